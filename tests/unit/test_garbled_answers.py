"""What a host answers that makes no sense is that host's fault, told in one line, and fills neither memory nor time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pdrgate.crashes.kernel_log import read_kernel_log
from pdrgate.guests.guest_clock import GuestClock
from pdrgate.hosts.answers import GarbledError, understood
from pdrgate.hosts.cpus import parse_cpu_list
from pdrgate.hosts.host import Completed, NoJsonError, local_host
from pdrgate.hosts.piped_program import PipedProgram
from pdrgate.observers.counters import FILES, read_counters
from pdrgate.observers.environment import capture_environment
from pdrgate.observers.watching import CounterObserver, watching
from pdrgate.values.errors import GeneratorError, PdrGateError, SutError, TestbedError, UnitError


class ToldHost:
    """A host that answers all that it is asked in the same words; a simulation."""

    name = "guest:linux-a"

    def __init__(self, told: str) -> None:
        self.told = told

    def run(self, *argv: str, timeout: float = 1.0, check: bool = True) -> Completed:
        return Completed(argv, 0, self.told, "")

    def script(self, text: str, timeout: float = 1.0) -> Completed:
        return self.run(text)

    def read(self, path: str) -> str:
        return self.told


GARBAGE = [
    "",
    "\n",
    "\0" * 100,
    "x",
    "-1",
    "9" * 5000,
    "1e400",
    "nan",
    "inf",
    "[]",
    "{}",
    "null",
    "[" * 100_000,
    '{"ready": []}',
    "\ud800",
    "==> /proc/stat <==\ncpu0 x y\n",
    "==> /proc/net/snmp6 <==\nIp6InReceives\n",
    "==> /proc/net/softnet_stat <==\n" + "zz " * 15 + "\n",
]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x\x1b[2J"),
        KeyError("name"),
        IndexError(),
        TypeError(),
        AttributeError(),
        ZeroDivisionError(),
        RecursionError(),
    ],
)
def test_what_cannot_be_taken_apart_is_the_hosts_fault(error: Exception) -> None:
    with pytest.raises(GarbledError) as told, understood("guest:linux-a"):
        raise error
    assert str(told.value).startswith(f"guest:linux-a answered what makes no sense ({type(error).__name__}: ")
    assert str(told.value).isprintable()
    assert isinstance(told.value, SutError)
    assert told.value.__cause__ is error  # for --debug


@pytest.mark.parametrize("error", [TestbedError("told"), UnitError("of a unit"), GeneratorError("a generator's")])
def test_what_is_told_already_stays_as_it_is(error: PdrGateError) -> None:
    with pytest.raises(type(error)) as told, understood("guest:linux-a"):
        raise error
    assert told.value is error


def test_what_is_no_matter_of_answers_is_not_hidden() -> None:
    with pytest.raises(AssertionError), understood("guest:linux-a"):
        raise AssertionError("a fault of ours")


@pytest.mark.parametrize("garbage", GARBAGE)
def test_whatever_a_host_tells_of_itself_ends_in_a_sentence(garbage: str) -> None:
    host: Any = ToldHost(garbage)
    for ask in (
        lambda: read_kernel_log(host),
        lambda: capture_environment(host, ("eth0",)),
        lambda: read_counters(host, ("eth0",)),
        lambda: GuestClock(host).check(),
    ):
        try:
            with understood(host.name):
                ask()
        except PdrGateError as error:
            assert str(error).isprintable()


@pytest.mark.parametrize("seed", range(40))
def test_counters_that_are_garbled_in_a_trial_are_the_suts_fault(seed: int) -> None:
    """This machine's own counters, with some characters of them exchanged."""
    chance = random.Random(seed)
    with local_host() as local:
        text = local.run("tail", "-n", "+1", *FILES, "/dev/null", check=False).stdout
    garbled = list(text)
    for at in chance.sample(range(len(garbled)), k=min(len(garbled), 400)):
        garbled[at] = chance.choice("\0 \n-:x9\ufffd=<")
    host: Any = ToldHost("".join(garbled))
    try:
        with watching([CounterObserver(lambda: read_counters(host, (), programs=False))]):
            pass
    except PdrGateError as error:
        assert str(error).isprintable()


def test_json_as_deep_as_a_stack_is_no_json() -> None:
    with local_host() as host, pytest.raises(NoJsonError, match=r"printed no JSON"):
        host.run_json("sh", "-c", "head -c 200000 /dev/zero | tr '\\0' '['")


@pytest.mark.parametrize("answer", ["[]", "7", "null", '"ready"', "[1, 2]", "", "{", "[" * 100_000, "{}"])
def test_a_program_there_that_answers_nonsense_is_the_hosts_fault(answer: str, tmp_path: Path) -> None:
    program: Any = PipedProgram.__new__(PipedProgram)
    program._host, program._what = ToldHost(answer), "the receivers"
    with pytest.raises(GarbledError), understood("guest:linux-a"):
        program._parsed(answer)["ready"]


@pytest.mark.parametrize("told", ["nan", "inf", "-inf", "", "x 1", "1e400"])
def test_a_clock_that_is_no_number_is_garbage(told: str) -> None:
    host: Any = ToldHost(told)
    with pytest.raises(GarbledError), understood(host.name):
        GuestClock(host).check()


@pytest.mark.parametrize("text", ["0-99999999999", "70000", "0-65536", "x", "0," * 3 + "9" * 400])
def test_a_list_of_more_cpus_than_there_can_be_fills_no_memory(text: str) -> None:
    with pytest.raises(ValueError):
        parse_cpu_list(text)


def test_no_message_is_a_terminals_command_or_a_book() -> None:
    error = TestbedError("a\x1b[31m b\x9b2J \x07c \u202ed\n" + "x" * 10_000)
    assert str(error).startswith("a\ufffd[31m b\ufffd2J \ufffdc \ufffdd xxx")
    assert str(error).isprintable()
    assert len(str(error)) < 5000
    assert str(TestbedError("Straße: 3 µs, größer")) == "Straße: 3 µs, größer"
