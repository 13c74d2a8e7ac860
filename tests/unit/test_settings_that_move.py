"""Settings as hosts have them: state that moves by itself, words that we do not know, what excludes one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdrgate.knobs.firewall import FirewallRules

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


def _ruleset(rule: str, chain: str = "input", more: str = "") -> str:
    return f"table inet filter {{\n{more}\tchain {chain} {{\n\t\t{rule}\n\t}}\n}}"


def _set(*lines: str) -> str:
    return "\tset s {\n" + "".join(f"\t\t{line}\n" for line in ("type ipv4_addr", *lines)) + "\t}\n"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (_ruleset("counter packets 1 bytes 60 accept"), _ruleset("counter packets 900 bytes 54000 accept"), True),
        (_ruleset("udp dport 9 last used 1s28ms accept"), _ruleset("udp dport 9 last used never accept"), True),
        (_ruleset("quota 5 mbytes used 29 bytes"), _ruleset("quota 5 mbytes used 4 kbytes"), True),
        (_ruleset("quota over 5 mbytes used 29 bytes drop"), _ruleset("quota over 5 mbytes drop"), True),
        (_ruleset("quota 5 mbytes used 29 bytes"), _ruleset("quota 6 mbytes used 29 bytes"), False),
        (_ruleset("udp dport 9 last used 1s"), _ruleset("udp dport 10 last used 1s"), False),
        (_ruleset("accept", more="\tquota q {\n\t\tover 5 mbytes used 1 bytes\n\t}\n"),
         _ruleset("accept", more="\tquota q {\n\t\tover 5 mbytes used 2 bytes\n\t}\n"), True),
        (_ruleset("accept", more=_set("flags dynamic,timeout", "elements = { 10.0.0.1 expires 9s, 10.0.0.2 }")),
         _ruleset("accept", more=_set("flags dynamic,timeout")), True),
        (_ruleset("accept", more=_set("flags timeout", "elements = { 10.0.0.1 timeout 1m expires 9s, 10.0.0.2 }")),
         _ruleset("accept", more=_set("flags timeout", "elements = { 10.0.0.2 }")), True),
        (_ruleset("accept", more=_set("elements = { 10.0.0.1 counter packets 1 bytes 2,\n\t\t\t     10.0.0.2 }")),
         _ruleset("accept", more=_set("elements = { 10.0.0.1 counter packets 3 bytes 4, 10.0.0.2 }")), True),
        (_ruleset("accept", more=_set("elements = { 10.0.0.1, 10.0.0.2 }")),
         _ruleset("accept", more=_set("elements = { 10.0.0.1 }")), False),
        (_ruleset('log prefix "last used 1s"'), _ruleset('log prefix "last used 2s"'), False),
    ],
)  # fmt: skip
def test_rules_that_nobody_touched_are_the_same_rules(before: str, after: str, same: bool) -> None:
    assert FirewallRules("none").holds(after, before) is same


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
def test_listings_of_rules_as_they_were_reported() -> None:
    before, after = (CASES / "nft-moving-state/two-listings.txt").read_text().split("---\n")
    assert FirewallRules("none").holds(after, before)
