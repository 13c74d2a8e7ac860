"""What kernels make of a program, in a sentence each and an exit code."""

from __future__ import annotations

import pytest

from pdrgate.gate.comparisons.loads_on_kernels import LoadOnKernel, exit_code

COST = {"verified": 403, "jited": 1519, "memory": 504}
TAKES = LoadOnKernel(kernel="linux-image-a", release="6.12.1", loads=True, cost=COST)
REFUSES = LoadOnKernel(kernel="6.1.9", release="6.1.9", loads=False, reason="R6 invalid mem access")
DIED = LoadOnKernel(kernel="linux-image-c", reason="no sign of life")


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (TAKES, "linux-image-a (6.12.1): loads: 403 verified instructions, 1519 bytes of machine code, "
                "504 bytes of maps"),
        (REFUSES, "6.1.9: is refused: R6 invalid mem access"),
        (DIED, "linux-image-c: could not be asked: no sign of life"),
    ],
)  # fmt: skip
def test_each_is_a_sentence(one: LoadOnKernel, sentence: str) -> None:
    assert one.sentence == sentence


def test_a_refusal_is_the_gravest_and_a_kernel_that_was_not_asked_is_no_answer() -> None:
    assert exit_code([TAKES, TAKES]) == 0
    assert exit_code([TAKES, DIED, REFUSES]) == 1
    assert exit_code([TAKES, DIED]) == 2
