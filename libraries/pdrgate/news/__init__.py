"""News (floor 5): what changed since it was last reported, and the ways by which people hear of it once."""
