"""The data paths: what makes the SUT forward, each in a module of its own; `catalogue` is their front."""
