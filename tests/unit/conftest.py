"""Settings for all unit tests."""

from hypothesis import settings

# No test asserts time: a first example that imports scipy, or a busy machine, is no failure.
settings.register_profile("pdrgate", deadline=None)
settings.load_profile("pdrgate")
