"""Observers of the machine: counters around a trial, and the environment of a run."""
