"""Protection of a host's state (floor 2): locks, the journal of changes, and recovery of what runs left."""
