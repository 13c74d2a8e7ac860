"""The error family: what an error quotes of a stranger's controls nobody's terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.builds.kernel_build import BuildError
from pdrgate.cli.boots_session import Sentences
from pdrgate.values.errors import (
    DataError,
    GeneratorError,
    PdrGateError,
    StorageError,
    SutError,
    TestbedError,
    UsageError,
)

_FAMILY = (PdrGateError, BuildError, DataError, GeneratorError, StorageError, SutError, TestbedError, UsageError)


@given(st.text(), st.sampled_from(_FAMILY))
def test_every_error_is_one_line_that_controls_nothing(told: str, family: type[PdrGateError]) -> None:
    message = str(family(told))
    assert len(message.splitlines()) <= 1
    assert not {unicodedata.category(one) for one in message} & {"Cc", "Cf", "Cs", "Co", "Cn"}


def test_what_is_said_of_a_guest_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Sentences(to_stderr=False).said("the console ends with: \x1b]0;owned\x07\x1b[2J")
    assert "\x1b" not in capsys.readouterr().out
