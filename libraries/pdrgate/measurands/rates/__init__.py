"""Measurands of packets/s, losses and delays."""
