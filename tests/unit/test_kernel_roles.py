"""Functions of Linux by what they do: of a kernel that has none of a role it is said what nobody knows of it."""

from __future__ import annotations

import dataclasses
from itertools import chain

import pytest

from pdrgate.guests.metering.memory.memory_meter import Role
from pdrgate.guests.metering.memory.memory_observer import memory_marks
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols
from pdrgate.observers.kernel_roles import (
    ROLES_OF_ONE_CPU,
    ROLES_OF_SEVERAL_CPUS,
    TAKES_UP,
    TICK,
    KernelRole,
    absent,
)

ROLES = tuple(dict.fromkeys((*ROLES_OF_ONE_CPU, *ROLES_OF_SEVERAL_CPUS)))


def kernel(*roles: KernelRole, last: bool = False) -> KernelSymbols:
    """One that has a function of each role, by its first or its last name."""
    names = dict.fromkeys(one.names[-1 if last else 0] for one in roles)
    return KernelSymbols(KernelSymbol(0x1000 * number, name) for number, name in enumerate(names, 1))


@pytest.mark.parametrize("last", [False, True])
def test_a_kernel_with_a_function_of_each_role_by_any_of_its_names_has_them_all(last: bool) -> None:
    assert absent(ROLES, kernel(*ROLES, last=last)) == ()


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.does)
def test_a_kernel_that_names_a_function_otherwise_is_reported_with_what_is_not_known(role: KernelRole) -> None:
    names = {name for one in ROLES if one != role for name in one.names} - set(role.names)
    others = KernelSymbols(KernelSymbol(0x1000 * number, name) for number, name in enumerate(sorted(names), 1))
    assert role.absence() in absent(ROLES, others)
    assert role.absence().startswith(f"no function is known that {role.does} (")
    assert "\n" not in role.absence()


def test_roles_and_their_names_stand_once() -> None:
    assert len({one.does for one in ROLES}) == len(ROLES)
    assert all(len(set(one.names)) == len(one.names) for one in ROLES)
    assert all(chain.from_iterable((one.names, one.unknown) for one in ROLES))


def test_calls_are_those_of_the_first_function_that_was_called() -> None:
    assert TAKES_UP.calls({"gro_receive_skb": (900, 90), "ip_rcv": (9, 1)}) == 90
    assert TAKES_UP.calls({"napi_gro_receive": (900, 80), "gro_receive_skb": (900, 90)}) == 80
    assert TICK.calls({}) == 0


def test_marks_are_where_functions_of_a_role_begin() -> None:
    symbols = kernel(*ROLES_OF_ONE_CPU)
    marks = dict(memory_marks(symbols, "napi_gro_receive"))
    (taken,) = symbols.entries("napi_gro_receive")
    assert marks[taken] is Role.PACKET
    assert {Role.INTERRUPT, Role.RETURN, Role.FOREIGN, Role.POLL} <= set(marks.values())
    assert memory_marks(symbols, "not there") == [one for one in memory_marks(symbols, "") if one[1] != Role.PACKET]
    renamed = dataclasses.replace(TAKES_UP, names=("of_next_year",))
    assert absent([renamed], symbols) == (renamed.absence(),)
