"""What becomes of an error of a guest's shell: the guest's own, or that of a program in it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pdrgate.guests.guest import Guest, GuestError
from pdrgate.hosts.host import HostError, NoJsonError


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    """One whose QEMU runs."""
    made = Guest.__new__(Guest)
    made._silent, made._closed, made._process = "", False, SimpleNamespace(poll=lambda: None)  # type: ignore[assignment]
    made.build, made.console = SimpleNamespace(name="linux-a"), tmp_path / "console.log"  # type: ignore[assignment]
    made.console.write_text("[ 1.0] it is up\n")
    return made


def test_a_program_that_answers_otherwise_than_in_json_is_no_lost_guest(guest: Guest) -> None:
    with pytest.raises(NoJsonError, match=r"^`ip -j link` said nothing of use$"), guest._telling():
        raise NoJsonError("`ip -j link` said nothing of use")


def test_a_lost_shell_is_a_lost_guest_whatever_it_was_asked(guest: Guest) -> None:
    """What an error is once was told by words in it."""
    with (
        pytest.raises(
            GuestError, match=r"^linux-a took no `echo printed no JSON` and does not answer; its console ends"
        ),
        guest._telling(),
    ):
        raise HostError("took no `echo printed no JSON`")
