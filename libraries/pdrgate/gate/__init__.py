"""Floor 4: what to measure next, and what the measurements mean for the build."""
