"""Measurands of what memory a packet touches, and of who else touches it."""
