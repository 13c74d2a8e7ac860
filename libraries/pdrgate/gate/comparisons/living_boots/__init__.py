"""Boots that stay up while several scenarios are measured on them, one after the other."""
