"""Verdicts: what changes, disturbances and stored baselines say of a build, and the words for that."""
