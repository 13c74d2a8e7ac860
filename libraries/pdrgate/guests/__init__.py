"""Guests (floor 2): kernel builds booted under QEMU."""
