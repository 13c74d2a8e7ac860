"""What keeps a host as it was (floor 2): locks, the journal of changes, and recovery of what runs left."""
