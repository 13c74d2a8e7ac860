"""Lines of data that a plugin lists one by one, each with the instruction that touched it."""

from __future__ import annotations

import numpy as np

LISTED_LINE = np.dtype(
    [
        ("line", "<u8"), ("touched", "<u8"), ("written", "<u8"), ("writer", "<u8"), ("place", "<u4"), ("lines", "<u4"),
        ("kind", "<u4"), ("missed_l2", "<u4"), ("missed_last", "<u4"), ("first_ever", "<u4"),
    ]
)  # fmt: skip
"""The line's number, its bytes that the instruction touched and those that were written, a bit each, where that was,
the instruction's number, how many such lines count, their kind, and of memory trials how many of them the second and
the last level of the model did not have, though they had been touched before, and how many never had been."""
