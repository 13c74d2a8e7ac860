"""Several commands go to a real shell in one round trip, and each has an exit code and output of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdrgate.data_paths.set_up_path import commands_at_once
from pdrgate.hosts.host import Completed, ShellHost


class Counting(ShellHost):
    """A shell of this machine that counts its round trips."""

    trips = 0

    def _script(self, *given_: Any, **named: Any) -> Completed:
        self.trips += 1
        return super()._script(*given_, **named)


@pytest.fixture(scope="module")
def host() -> Iterator[Counting]:
    with contextlib.closing(Counting("local", ("sh",))) as opened:
        yield opened


def run(host: Counting, *commands: str, before: str = "cd /", go_on: bool = False) -> list[tuple[int, str, str]]:
    found = commands_at_once(host, before, commands, 30.0, go_on=go_on)
    return [(one.exit_code, one.stdout, one.stderr) for one in found]


def test_three_commands_take_one_round_trip_and_each_has_its_own_output(host: Counting) -> None:
    trips = host.trips
    found = run(host, "echo a; echo b", "printf c; echo warned >&2", "true")
    assert found == [(0, "a\nb\n", ""), (0, "c", "warned\n"), (0, "", "")]
    assert host.trips == trips + 1


def test_what_follows_a_command_that_fails_is_not_begun(host: Counting) -> None:
    assert run(host, "echo a", "echo why >&2; exit 7", "echo never") == [(0, "a\n", ""), (7, "", "why\n")]
    assert [code for code, _, _ in run(host, "exit 7", "no-such-program", "true", go_on=True)] == [7, 127, 0]


@pytest.mark.parametrize("breaking", ["exit 0", "set -e; cd /tmp", "export A=1; exec true", "cd /nowhere || true"])
def test_no_command_changes_the_shell_of_the_next_one(host: Counting, breaking: str) -> None:
    assert run(host, breaking, "pwd; echo ${A:-none}", before="cd /")[1] == (0, "/\nnone\n", "")


def test_what_stands_before_ends_the_first_command(host: Counting) -> None:
    [(code, _, error)] = run(host, "echo never", "echo never", before="cd /no/such/folder || exit")
    assert code
    assert "/no/such/folder" in error


def test_a_command_that_kills_the_script_is_the_last_one(host: Counting) -> None:
    found = run(host, "echo a", "kill -9 $PPID; sleep 1", "echo never")
    assert found[0] == (0, "a\n", "")
    assert len(found) == 2
    assert found[1][0]


def test_nothing_is_sent_where_there_is_no_command(host: Counting) -> None:
    trips = host.trips
    assert run(host) == []
    assert host.trips == trips


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 120), st.text("ab\n '$\\%", max_size=9)), min_size=1, max_size=5))
def test_codes_and_outputs_are_those_of_as_many_shells(host: Counting, made: Sequence[tuple[int, str]]) -> None:
    commands = [f"printf %s {_quoted(text)}; exit {code}" for code, text in made]
    assert run(host, *commands, go_on=True) == [(code, text, "") for code, text in made]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"
