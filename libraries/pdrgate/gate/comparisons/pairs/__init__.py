"""Pairs of boots: how many a comparison takes, what they say, and what is left of earlier ones."""
