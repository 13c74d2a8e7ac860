"""One examination of a testbed: which checks it gets, in which order, and what those need that come later."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from pdrgate.builds.architecture import this_machines
from pdrgate.doctor import here, machine, ports, traffic
from pdrgate.doctor.finding import Check, Finding, Status
from pdrgate.hosts.host import Host, local_host
from pdrgate.observers.cpu_use import WINDOW
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, Resource, whole_machine
from pdrgate.safety.recovery import NotUndone, living, recover_stale, undo
from pdrgate.safety.state_folder import STATE_DIR
from pdrgate.testbeds import LocalVm, Testbed, TestbedConfig, open_testbed
from pdrgate.values.errors import PdrGateError

HERE = "this machine"
TESTBED = "testbed"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CHECKS_OF_TESTBED = ("reached", "links", "self-test")


class Examination:
    """The checks of the testbed that a file describes.

    Args:
        results: the folder that runs will be written into.
        wait: seconds to wait for another run to let go of what the testbed needs.
        opener: sets the testbed up.
        state: where the locks and journals of runs lie.
        window: seconds that CPUs are watched for what else runs there.
        host: this machine.
    """

    def __init__(
        self,
        config: TestbedConfig,
        results: Path,
        *,
        wait: float = 0.0,
        opener: Callable[[TestbedConfig, Journal], Testbed] = open_testbed,
        state: Path = STATE_DIR,
        window: float = WINDOW,
        pause: Callable[[float], None] = time.sleep,
        host: Host | None = None,
    ) -> None:
        self._config = config
        self._guest = config if isinstance(config, LocalVm) else None
        self._results = results
        self._wait = wait
        self._opener = opener
        self._state = state
        self._window = window
        self._pause = pause
        self._host = host or local_host()

    def findings(self) -> Generator[Finding]:
        """Every check's finding as soon as it is known. What it needs is ours meanwhile, and is put back after."""
        with ExitStack() as stack:
            stack.callback(self._host.close)
            environment = self._environment()
            for check in self._still(environment):
                yield check.on(HERE)
            try:
                lease = stack.enter_context(Lease.acquire(self._resources(), self._state, self._wait))
                undone = recover_stale(self._state, lease=lease)
                alive = living(self._state)
                journal = stack.enter_context(Journal.begin(self._state, lease))
            except PdrGateError as error:
                yield Finding(HERE, "other runs", Status.FAIL, str(error))
                yield from _unknown(_CHECKS_OF_TESTBED, "what the testbed needs cannot be taken")
                return
            yield Finding(HERE, "other runs", Status.OK, "none uses what this testbed needs")
            yield here.leftovers(self._host, undone, alive).on(HERE)
            # Only now: what another run does would be taken for a disturbance.
            for check in self._quiet(self._host, self._roles()):
                yield check.on(HERE)
            try:
                yield from self._with_testbed(journal)
            except BaseException:
                # An interruption may come when the testbed is made and not yet ours to close.
                undo(journal)
                raise
            yield from _back(undo(journal))

    def _with_testbed(self, journal: Journal) -> Iterator[Finding]:
        if self._config.waits_for_build:
            yield Finding(
                TESTBED, "set-up", Status.WARN, "it boots kernels, and none was named", "name one with --kernel BUILD"
            )
            yield from _unknown(_CHECKS_OF_TESTBED, "there is no kernel to boot")
            return
        try:
            testbed = self._opener(self._config, journal)
        except PdrGateError as error:
            yield Finding(TESTBED, "set-up", Status.FAIL, str(error))
            yield from _unknown(_CHECKS_OF_TESTBED, "the testbed cannot be set up")
            return
        failure: PdrGateError | None = None
        try:
            yield Finding(TESTBED, "set-up", Status.OK, testbed.sentence())
            yield from self.examine(testbed)
        except PdrGateError as error:
            yield Finding(TESTBED, "examination", Status.FAIL, f"it ended early: {error}")
        finally:
            try:
                testbed.close()
            except PdrGateError as error:
                failure = error
        if failure is not None:
            yield Finding(TESTBED, "put back", Status.FAIL, str(failure))

    def examine(self, testbed: Testbed) -> Iterator[Finding]:
        """The checks of a testbed that is set up."""
        of_sut = testbed.environment()
        for host in _once(hop.host for hop in testbed.hops):
            yield machine.reached(host, lambda host=host: _identity(host)).on("SUT")  # type: ignore[misc]
        for check in self._of_sut(testbed, of_sut):
            yield check.on("SUT")
        several = len(testbed.hops) > 1
        for number, hop in enumerate(testbed.hops, start=1):
            yield ports.links(hop, of_sut.ports if number == 1 else (), number if several else None).on("SUT")
        if self._guest is None:  # a guest's ports are as near as its CPUs
            yield ports.numa(of_sut, testbed.sut_cpus).on("SUT")
        yield from traffic.self_test(testbed)

    # --- Which checks ---

    def _still(self, environment: Environment) -> list[Check]:
        """The checks of this machine that another run does not falsify."""
        checks = [machine.kernel_and_cpu(environment)]
        tools = ["ip", "ethtool"]
        if self._guest is not None:
            tools.append(this_machines().qemu)
        checks += [machine.rights(self._host), machine.tools(self._host, tools), here.disk(self._results)]
        if self._guest is not None:
            checks.append(here.guests(self._guest.accelerator, self._state))
        if self._config.sut_is_here:
            checks.append(here.cpus(self._config.cpu_plan, environment))
        return [*checks, machine.clock(environment), machine.frequency(environment), machine.throttling(self._host)]

    def _quiet(self, host: Host, roles: dict[int, str]) -> Sequence[Check]:
        checks: Sequence[Check] = ()
        if roles:
            own = os.getpid() if host is self._host else None
            checks = machine.quiet(host, roles, own, window=self._window, pause=self._pause)
        return (*checks, machine.load(host, os.cpu_count() if host is self._host else None))

    def _of_sut(self, testbed: Testbed, environment: Environment) -> Sequence[Check]:
        """The checks of the SUT's machine that this machine has not been given."""
        if not testbed.hops:
            return ()
        host = testbed.hops[0].host
        if host.read(_BOOT_ID) == self._host.read(_BOOT_ID):
            # Which CPUs of ours a rack's SUT has is known only now.
            planned = self._config.sut_is_here
            return () if planned else self._quiet(self._host, dict.fromkeys(testbed.sut_cpus, "the SUT"))
        if self._guest is not None:  # its CPUs are this machine's, and its tools ours
            return [machine.kernel_and_cpu(dataclasses.replace(environment, hypervisor=None))]
        return [
            machine.kernel_and_cpu(environment),
            machine.rights(host),
            machine.tools(host, ["ip", "ethtool"]),
            machine.clock(environment),
            machine.same_time(host),
            machine.frequency(environment),
            machine.throttling(host),
            *self._quiet(host, dict.fromkeys(testbed.sut_cpus, "the SUT")),
        ]

    def _resources(self) -> frozenset[Resource]:
        try:
            return self._config.resources()
        except PdrGateError:
            return whole_machine()  # the cause is reported by its own check, or when the testbed is set up

    def _roles(self) -> dict[int, str]:
        """The role of each CPU of this machine that is to have one."""
        if self._config.generator.trex is not None:
            return {}
        try:
            plan = self._config.cpu_plan()
        except PdrGateError:
            return {}  # reported by its own check, or when it is set up
        # Which CPUs another SUT has is known once it is set up.
        sut = plan.sut if self._config.sut_is_here else ()
        return {plan.generator: "the generator", **dict.fromkeys(sut, "the SUT")}

    def _environment(self) -> Environment:
        try:
            return capture_environment(self._host)
        except PdrGateError:
            return Environment()


def _identity(host: Host) -> str:
    if not host.name.startswith("ssh:"):
        return ""
    # Only here: SSH takes a while to load.
    from pdrgate.hosts.ssh import SshHost

    if not isinstance(host, SshHost):
        return ""
    transport = host.connection.client().get_transport()
    if transport is None:
        return ""
    key = transport.get_remote_server_key()
    return f"; its host key is the known one ({key.get_name()} {key.fingerprint})"


def _once(hosts: Iterator[Host]) -> Iterator[Host]:
    """Each host once, and of namespaces of one machine, which answer alike, the first."""
    seen = set()
    for host in hosts:
        kind = host.name.partition(":")[0]
        if kind not in seen:
            seen.add(kind)
            yield host


def _back(undone: Sequence[str]) -> Iterator[Finding]:
    """Leftovers that the testbed did not put back itself, whether they could be removed or not."""
    for sentence in undone:
        status = Status.FAIL if isinstance(sentence, NotUndone) else Status.WARN
        yield Finding(TESTBED, "put back", status, sentence)


def _unknown(checks: Sequence[str], why: str) -> Iterator[Finding]:
    for check in checks:
        yield Finding(TESTBED, check, Status.UNKNOWN, f"not looked at: {why}")
