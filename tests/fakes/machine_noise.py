"""What a gate may say of a sound measurement on a machine that others use too."""

from __future__ import annotations

UNDECIDED = frozenset({"UNSTABLE", "INCONCLUSIVE", "DISTURBED", "GENERATOR_LIMITED"})
"""Verdicts of a machine that did not let it be told; which of them is the machine's doing, not the test's."""

MEASURED = UNDECIDED | {"NO_BASELINE"}
"""Verdicts of a run that had nothing to compare with."""
