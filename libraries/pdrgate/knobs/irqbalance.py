"""The daemon that moves interrupts between CPUs, and so undoes every affinity that is set."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import Knob
from pdrgate.values.errors import TestbedError

_SERVICE = "irqbalance"
_PROCESS = "process "
_PATIENCE = 50
"""Tenths of a second."""

# One that has ended, and whose parent has not asked for it, still has a name but no command line.
_LIVES = '[ "$(tr -d \'\\000\' 2>/dev/null <"/proc/$p/cmdline")" ]'
_FIND = f"""
for c in /proc/[0-9]*/comm; do
    {{ read -r n <"$c"; }} 2>/dev/null && [ "$n" = {_SERVICE} ] || continue
    p=${{c%/comm}}; p=${{p#/proc/}}; {{ {_LIVES}; }} 2>/dev/null && echo "$p"
done; true"""
_WAIT = f"""
kill "$@" || exit 1
i=0; while [ $i -lt {_PATIENCE} ]; do
    left=; for p; do {{ {_LIVES}; }} 2>/dev/null && left=1; done
    [ "$left" ] || exit 0
    i=$((i + 1)); sleep 0.1
done
echo "it ignores SIGTERM" >&2; exit 1"""
_START = f"""
setsid sh -c '"$@" </dev/null >/dev/null 2>&1 &' sh "$@"
i=0; while [ $i -lt {_PATIENCE} ]; do
    [ "$({_FIND})" ] && exit 0
    i=$((i + 1)); sleep 0.1
done
echo "it does not come up" >&2; exit 1"""


@dataclass(frozen=True, slots=True)
class Irqbalance(Knob):
    """Whether irqbalance runs: ``on`` or ``off``. Off is what a host without it has already.

    Its states are ``service`` (systemd runs it), ``process COMMAND`` (somebody else does) and ``off``. What ran is
    started again as it was.
    """

    kind = "irqbalance"

    value: str

    def describe(self) -> str:
        return f"irqbalance: {self.value}"

    def lacking(self, host: Host) -> str | None:
        if self.value == "off" or self.read(host) != "off" or self._installed(host):
            return None
        return f"{host.name} has no service irqbalance to start"

    def read(self, host: Host) -> str:
        if self._systemd(host) and host.run("systemctl", "is-active", _SERVICE, check=False).stdout.strip() == "active":
            return "service"
        if not (pids := self._processes(host)):
            return "off"
        words = host.read(f"/proc/{pids[0]}/cmdline").rstrip("\0").split("\0")
        return _PROCESS + shlex.join(words)

    def apply(self, host: Host) -> None:
        if not self.holds(self.read(host), self.value):
            self._set(host, "service" if self.value == "on" else "off")

    def holds(self, actual: str, wanted: str) -> bool:
        return actual != "off" if wanted == "on" else actual == wanted

    def _set(self, host: Host, wanted: str) -> None:
        if (now := self.read(host)) == wanted:
            return
        if now == "service":
            host.run("systemctl", "stop", _SERVICE, timeout=60)
        elif now != "off":
            host.run("sh", "-c", _WAIT, "sh", *self._processes(host))
        if wanted == "service":
            host.run("systemctl", "start", _SERVICE, timeout=60)
        elif wanted != "off":
            host.run("sh", "-c", _START, "sh", *shlex.split(wanted.removeprefix(_PROCESS)))
        if not self.holds(back := self.read(host), wanted):
            raise TestbedError(
                f"irqbalance on {host.name} should be {wanted}, but is {back}; does a service start or stop it?"
            )

    def _processes(self, host: Host) -> list[str]:
        return host.run("sh", "-c", _FIND).stdout.split()

    def _systemd(self, host: Host) -> bool:
        return host.exists("/run/systemd/system")

    def _installed(self, host: Host) -> bool:
        return self._systemd(host) and host.run("systemctl", "cat", _SERVICE, check=False).exit_code == 0
