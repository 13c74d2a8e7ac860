"""A network namespace of a run's own, which ends with its testbed."""

from __future__ import annotations

from pdrgate.hosts.host import ShellHost, local_host, netns_host
from pdrgate.knobs import KnobSet, sysctl
from pdrgate.observers.namespace_counters import NamespaceCounters
from pdrgate.safety.journal import NAMESPACE_PREFIX, Journal


class OwnNamespace:
    """A namespace from `make` to `close`.

    Args:
        name: what it is called behind the prefix of all such namespaces.
        journal: where it is noted for the case that this process is killed.
    """

    def __init__(self, name: str, journal: Journal) -> None:
        self.name = f"{NAMESPACE_PREFIX}-{name}"
        self._journal = journal
        self._may_be_there = False
        self._host: ShellHost | None = None
        self._counters: NamespaceCounters | None = None

    def make(self) -> None:
        """Make the namespace. Raises TestbedError; what was made is then removed by `close`."""
        self._journal.namespace(self.name)
        self._may_be_there = True  # before: an interruption may come when it is just made
        with local_host() as here:
            here.run("ip", "netns", "add", self.name)
        self._host = netns_host(self.name)
        self._counters = NamespaceCounters(self.name)
        # No address of its own, no router solicitation, no listener report: only test packets on these links.
        KnobSet().apply(self._host, sysctl("net.ipv6.conf.default.disable_ipv6", 1), missing="ignore")

    @property
    def host(self) -> ShellHost:
        assert self._host is not None
        return self._host

    @property
    def counters(self) -> NamespaceCounters:
        assert self._counters is not None
        return self._counters

    def close(self) -> None:
        """Remove the namespace. Calling it twice is harmless. Raises TestbedError when it stays; the next call tries
        again."""
        for inside in (self._counters, self._host):
            if inside is not None:
                inside.close()
        if self._may_be_there:
            with local_host() as here:
                # A recovery may have been here: of a run that was interrupted while its testbed was open.
                if here.exists(f"/run/netns/{self.name}"):
                    here.run("ip", "netns", "delete", self.name)
            self._may_be_there = False  # only now: what failed or was interrupted is tried once more
