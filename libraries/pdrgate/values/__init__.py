"""Quantities with their units, texts that are safe to print, and the errors of pdrgate."""
