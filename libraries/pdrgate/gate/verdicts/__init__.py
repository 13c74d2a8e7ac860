"""Verdicts: what changes, disturbances and stored baselines say of a build, and how that is told."""
