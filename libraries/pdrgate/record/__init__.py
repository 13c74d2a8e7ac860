"""The record of a measurement: a trial or a transfer, its phase, its fate, and what disturbed it."""
