"""Floor 3: what was measured before, on disk: the trials of a run and the results of earlier ones."""
