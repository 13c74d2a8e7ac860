"""Access to machines (floor 2): this machine, a network namespace of it, or a machine reached by SSH."""
