"""The maximum receive rate of CSIT: what comes back of all that the generator can send."""

from __future__ import annotations

from pdrgate.measurands.description import Description, Rule
from pdrgate.measurands.unit_spelling import PACKETS

RECEIVE_RATE = Description(
    "MRR", PACKETS, "higher", "what is forwarded of all that the generator sends", rule=Rule.REPORT_ONLY
)  # fmt: skip
"""A test asks for trials of it by itself; the PDR, which is compared, is what a SUT holds."""
