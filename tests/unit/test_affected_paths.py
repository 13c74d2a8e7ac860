"""Which paths run what differs, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pdrgate.differences.affected_paths import affected_paths
from pdrgate.differences.code_differences import CodeDifference, CodeDifferences
from pdrgate.record.path_code import PathCode
from pdrgate.reports.words.affected_words import affected_lines, affected_values

_FORWARD = CodeDifference("function", "", "ip6_forward", "changed")
_MODULE = CodeDifference("function", "nf_tables", "nft_do_chain", "new")
_VARIABLE = CodeDifference("variable", "", "ip6_forward", "changed")


def differences(*differ: CodeDifference, functions: int = 100, missing: tuple[str, ...] = ()) -> CodeDifferences:
    return CodeDifferences(functions, 50, 3, differ, missing)


KNOWN: Mapping[str, PathCode | None] = {
    "IPv6 routing": PathCode(packets=frozenset(("ip6_forward", "ip6_rcv_core"))), "TCP": None,
}  # fmt: skip
ROUTING = {"IPv6 routing": KNOWN["IPv6 routing"]}


def test_a_path_is_affected_by_what_its_packets_execute() -> None:
    counted, unknown = affected_paths(differences(_FORWARD, _MODULE), KNOWN)
    assert counted.functions == ("ip6_forward",)
    assert counted.is_affected
    assert unknown.is_affected
    assert not unknown.is_known
    untouched, _ = affected_paths(differences(_MODULE, _VARIABLE), KNOWN)
    assert not untouched.is_affected


def test_a_part_of_a_function_is_that_function() -> None:
    part = CodeDifference("function", "", "ip6_forward.constprop", "changed")
    (path,) = affected_paths(differences(part), ROUTING)
    assert path.functions == ("ip6_forward",)


@pytest.mark.parametrize(
    ("code", "differs"),
    [
        (PathCode(packets=frozenset(("ip6_forward",))), "functions"),
        (PathCode(set_up=frozenset(("ip6_forward",))), "set_up"),
        (PathCode(packets=frozenset(("ip_rcv",)), variables=frozenset(("sysctl_max",))), "variables"),
        (PathCode(packets=frozenset(("ip_rcv",)), set_up=frozenset(("ip_rcv",))), ""),
    ],
)
def test_a_path_is_affected_by_packets_and_variables_and_not_by_its_set_up(code: PathCode, differs: str) -> None:
    found = differences(_FORWARD, CodeDifference("variable", "", "sysctl_max", "changed"))
    (path,) = affected_paths(found, {"NAT": code})
    kinds = ("functions", "variables", "set_up")
    assert [kind for kind in kinds if getattr(path, kind)] == ([differs] if differs else [])
    assert path.is_affected is (differs in ("functions", "variables"))


def test_a_function_that_packets_run_as_well_is_no_matter_of_set_up_alone() -> None:
    code = PathCode(packets=frozenset(("ip6_forward",)), set_up=frozenset(("ip6_forward",)))
    (path,) = affected_paths(differences(_FORWARD), {"NAT": code})
    assert path.functions == ("ip6_forward",)
    assert path.set_up == ()


def test_a_module_that_could_not_be_read_leaves_no_path_unaffected() -> None:
    (path,) = affected_paths(differences(missing=("module tun: is the file damaged?",)), ROUTING)
    assert path.is_affected
    assert not path.is_known


def test_the_lines_say_how_much_differs_and_which_paths_run_it() -> None:
    found = differences(_FORWARD, _MODULE)
    lines = list(affected_lines(found, affected_paths(found, KNOWN)))
    assert lines == [
        "1 of 100 functions differ, 0 are gone, 1 are new",
        "  ip6_forward",
        "  nf_tables: nft_do_chain (new)",
        "0 of 50 variables differ, 0 are gone, 0 are new",
        "3 modules compared",
        "2 of 2 paths run code that differs",
        "  IPv6 routing: ip6_forward",
        "  TCP: what it runs is not known",
    ]


def test_what_was_not_compared_is_said() -> None:
    assert "  not compared: module tun: damaged" in affected_lines(differences(missing=("module tun: damaged",)), ())


def test_builds_that_differ_everywhere_are_said_to_have_another_compiler() -> None:
    assert differences(_FORWARD, functions=1).everywhere
    assert not differences(_FORWARD, functions=2).everywhere
    assert "the builds have another compiler, configuration or layout" in affected_lines(
        differences(_FORWARD, functions=1), ()
    )


def test_values_hold_all_that_the_lines_say() -> None:
    found = differences(_FORWARD, _MODULE)
    values = affected_values(found, affected_paths(found, ROUTING))
    assert values["compared"] == {"functions": 100, "variables": 50, "modules": 3}
    assert values["paths"] == [
        {
            "path": "IPv6 routing", "affected": True, "known": True, "functions": ["ip6_forward"], "variables": [],
            "set_up": [],
        }
    ]  # fmt: skip


def test_a_strangers_name_controls_no_terminal() -> None:
    found = differences(CodeDifference("function", "", "ip6\x1b[31m", "changed"))
    assert not any("\x1b" in line for line in affected_lines(found, ()))
