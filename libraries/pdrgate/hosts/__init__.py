"""Access to machines (floor 2): this one, a network namespace of it, or one reached by SSH."""
