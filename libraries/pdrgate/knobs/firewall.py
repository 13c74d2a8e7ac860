"""Packet filtering: the nftables ruleset of a network namespace, which may be wanted empty.

Without rules nothing is tracked either: the kernel looks connections up (conntrack) only where a rule asks for them.
What it has tracked so far is left as it is, so that rules that come back find the connections they let through.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs.knob import Knob
from pdrgate.values.errors import TestbedError

NO_RULES = "none"
_LEGACY = ("/proc/net/ip_tables_names", "/proc/net/ip6_tables_names", "/proc/net/arp_tables_names")
_PASSING = re.compile(
    r'("[^"\n]*")|packets \d+ bytes \d+| expires \w+| used (?:never|\d+ \w*bytes|(?:\d+[wdhms]+)+)(?!\S)'
)
"""Texts that change by themselves in a ruleset that nobody touches; what is in quotes does not."""
_LEARNED = re.compile(r"(\b(?:set|map) \S+ \{[^{}]*\bflags [\w,]*dynamic[^{}]*?)\s+elements = \{[^}]*\}")
"""Elements that packets add to a set."""
_LEAVING = re.compile(r"(?<=[{,])\s*[^{},]*\bexpires \w+[^{},]*,?|\s+elements = \{\s*\}")
"""Elements that leave a set when their time is over, and what is left of a set of nothing else."""

_OWNED = re.compile(r"^table (\w+ \S+) \{[^\n]*\n\s+flags [\w,]*\bowner\b", re.MULTILINE)
"""A table that only the program may change that made it. To flush the ruleset leaves it there, without an error."""


@dataclass(frozen=True, slots=True)
class FirewallRules(Knob):
    """``value`` is ``none`` or the text of a ruleset."""

    kind = "firewall"

    value: str

    def describe(self) -> str:
        return f"firewall rules: {self.value}"

    def lacking(self, host: Host) -> str | None:
        for path in _LEGACY:
            # Readable without root, or not at all.
            if host.exists(path) and (tables := host.read(path).split()):
                return (
                    f"{host.name} has tables of iptables-legacy ({', '.join(tables)}), which nft neither shows nor "
                    "removes; remove them with iptables-legacy and its modules"
                )
        if (rules := self.read(host)) != NO_RULES:
            self._check(host, rules)
        return None

    def read(self, host: Host) -> str:
        return host.run("nft", "list", "ruleset", timeout=60).stdout.strip() or NO_RULES

    def holds(self, actual: str, wanted: str) -> bool:
        return _lasting(actual) == _lasting(wanted)

    def _set(self, host: Host, wanted: str) -> None:
        if wanted == NO_RULES:
            host.run("nft", "flush", "ruleset", timeout=60)
        else:
            self._load(host, f"flush ruleset\n{wanted}\n")
        if not self.holds(back := self.read(host), wanted):
            raise TestbedError(
                f"set the nftables rules of {host.name} to {_size(wanted)}, but they read back as {_size(back)}; does "
                "a service set them?"
            )

    def _check(self, host: Host, rules: str) -> None:
        """Raise TestbedError when the rules that are there could not be put back; asked before they are removed."""
        remedy = "save and remove them by hand, or leave the firewall alone"
        if owned := _OWNED.findall(rules):
            raise TestbedError(
                f"{host.name} has nftables rules that only their own program may change (flags owner: "
                f"{', '.join(owned)}); stop it, or firewalld's NftablesTableOwner=no, or leave the firewall alone"
            )
        if re.search(r"\bxt (match|target)\b", rules):
            raise TestbedError(f"{host.name} has rules made by iptables-nft, which nft could not put back; {remedy}")
        try:
            self._load(host, f"flush ruleset\n{rules}\n", "--check")
        except CommandError as error:
            raise TestbedError(
                f"{host.name} has nftables rules that nft itself would not take again ({error}); {remedy}"
            ) from error

    def _load(self, host: Host, rules: str, *options: str) -> None:
        # By a file: a host's programs have an empty standard input. Its name is new, so it follows no link.
        path = f"/run/pdrgate-rules-{secrets.token_hex(8)}"
        host.write(path, rules)
        try:
            host.run("nft", *options, "--file", path, timeout=60)
        finally:
            host.run("rm", "-f", path)


def _lasting(rules: str) -> str:
    """The rules without what changes by itself, in one line: how many elements stand in a line changes with them."""
    return " ".join(_PASSING.sub(r"\1", _left(_LEARNED.sub(r"\1", rules))).split())


def _size(rules: str) -> str:
    return rules if rules == NO_RULES else f"{len(rules.splitlines())} lines"


def _left(rules: str) -> str:
    """The rules without elements that leave their sets by themselves."""
    return _LEAVING.sub("", _LEAVING.sub("", rules))
