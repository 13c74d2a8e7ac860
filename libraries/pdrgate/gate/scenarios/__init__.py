"""Scenarios of one build: searched, repeated and judged."""
