"""Builds under test (floor 2): kernel builds and eBPF objects, found and checked."""
