"""Traffic generators (floor 2): each takes an intended load, a duration and frames, and returns a Trial."""
