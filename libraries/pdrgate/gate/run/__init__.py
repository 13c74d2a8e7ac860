"""The run: what was asked of it, who observes it, and what it keeps on disk."""
