"""Crash evidence (floor 2): what a kernel says when it dies or complains."""
