"""Floor 1: pure functions on numbers. No I/O, no trial, no packet."""
