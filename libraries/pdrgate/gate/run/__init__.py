"""The run: what was asked of it, who is told of it, and what it keeps on disk."""
