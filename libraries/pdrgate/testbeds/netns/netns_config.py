"""Contents of a testbed file on routers in namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import MACHINE, Resource
from pdrgate.testbeds.config import Claim, TestbedConfig
from pdrgate.testbeds.sharing import BACKLOG, cores_of, settings
from pdrgate.testbeds.this_machine import check_this_machine

# What opens a testbed is imported when one is opened: it takes a while to load, and reading a file needs none of it.
if TYPE_CHECKING:
    from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNetns(TestbedConfig):
    """Routers in a row, each a network namespace of this machine."""

    kind: ClassVar[str] = "local-netns"

    hops: int = 1

    def open(self, journal: Journal, claim: Claim | None = None) -> NetnsTestbed:
        """Make the namespaces; see `TestbedConfig.open`."""
        from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed

        check_this_machine(self.name, "makes network namespaces")
        return NetnsTestbed(
            self.hops,
            self.cpu_plan(),
            journal,
            engine=self.generator.engine,
            isolate=self.isolate,
            section=self.knobs,
        )

    def resources(self) -> frozenset[Resource]:
        """CPUs and this machine, of whose kernel the backlog and some of the file's knobs are settings."""
        return cores_of(self.cpu_plan()) | {MACHINE, Resource("setting", BACKLOG), *settings(self.knobs)}
