"""The data paths that there are, a file for each: its `PATHS` say all of them; `catalogue` finds them by being here."""
