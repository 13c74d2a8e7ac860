"""Measurands of what the SUT's CPU does for a packet."""
