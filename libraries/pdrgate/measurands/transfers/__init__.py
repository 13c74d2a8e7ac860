"""Measurands of a closed loop: TCP transfers, and requests that are answered."""
