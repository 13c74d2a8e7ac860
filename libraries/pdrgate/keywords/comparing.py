"""Keywords that compare builds, of the kernel or of an eBPF program: both are started several times, in turn.

Programs can also be run on packets, each by itself: no port, no load.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from robot.api import SkipExecution
from robot.api.deco import keyword

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.bpf_build import BpfBuild, bpf_build
from pdrgate.builds.identity import build_identity
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import check_one_architecture, named_build
from pdrgate.builds.program_setup import Attach, program_setup
from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.gate.comparisons.by_scenario import comparison_of, living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVectors
from pdrgate.gate.comparisons.packet_vectors.vectors_comparison import VectorsComparison
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.comparisons.spike_in import spike_in
from pdrgate.gate.run.options import FEWEST_BOOTS, USUAL_BOOTS
from pdrgate.gate.run.session import Session
from pdrgate.keywords.failures import verdict_failure
from pdrgate.keywords.log import show_scenario
from pdrgate.keywords.state import KeywordComponent, State
from pdrgate.results.model import Side
from pdrgate.values.errors import TestbedError, UsageError
from pdrgate.values.units import Duration, Ratio

_Found = TypeVar("_Found")

LIVING_BOOTS = 12
"""Boots of each build, at most, where packets are counted and nobody says."""
_DRAWING = "drawing what it rests on"
"""Said behind the verdict, of which a run ends seconds later."""


class BuildKeywords(KeywordComponent):
    """Boots are the replicates."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._named_build = cache(named_build)
        """Each build is looked for once, which takes apt a second."""
        self._identities: dict[tuple[Path, Path | None, int], str] = {}
        """Digest of each build, by image, modules and the image's time.

        To look at thousands of modules for each path takes long.
        """

    @keyword
    def compare_kernel_builds(
        self,
        candidate: str,
        baseline: str,
        boots: int | None = None,
        tolerance: Ratio | None = None,
        budget: Duration | None = None,
    ) -> None:
        """Boots two kernel builds in pairs, ``boots`` times each at most, and measures the scenario in every boot.

        ``candidate`` and ``baseline`` are each a .deb, a bzImage, a kernel build tree, or the name of a distribution
        package, which is downloaded and unpacked. ``,modules=FOLDER`` and ``,vmlinux=FILE`` may follow. ``running`` is
        the running kernel's. Guests of both builds are up at once, and measured side by side. On a rack a build is
        installed beside the SUT's kernels, started once, and removed after the boot's trials, see docs/bare-metal.md.

        The comparison may end from the fourth pair on. It ends as soon as the pairs distinguish an unchanged build from
        one that is worse by twice the ``tolerance``, in PDR, in saturation throughput and, by a tolerance of its own,
        in the cost of a packet. No boot begins after ``budget``. Without ``boots``, ``tolerance`` or ``budget`` it is
        that of `Open Testbed`.

        The option ``spike_in`` of `Open Testbed` shows of a comparison that passes that it could have failed: the
        baseline, slowed down by twice the ``tolerance``, is compared with itself. That must be a REGRESSION; else the
        comparison is INCONCLUSIVE.

        Fails with CRASH when two boots of the candidate fail (a panic, a hang, no answer) and none of the baseline, and
        with ERROR when the baseline's fail too. `Measurement Should Be Stable` then judges the trials of both builds,
        and `PDR Should Not Have Regressed` the change, by a tolerance of its own where it names one.

        | Compare Kernel Builds    candidate=../linux    baseline=linux-image-6.1.0-18-amd64    boots=24
        """
        session = self._state.current.session

        self._compare(
            self._named_build, partial(self._of_kernel, session), (baseline, candidate), boots, tolerance, budget
        )

    @keyword
    def count_kernel_builds(
        self,
        candidate: str,
        baseline: str,
        boots: int | None = None,
        budget: Duration | None = None,
        several_cpus: bool = False,
    ) -> None:
        """Compares two kernel builds by the instructions that a packet costs, on guests that stay up from test to test.

        The first test boots two guests of each build; each test sets them up for its scenario, all at once, counts at
        saturation and at a light load, and puts them back. Two more of each are booted for what these do not decide, at
        most ``boots`` in all, which is 12 unless the run's option says otherwise. A guest that dies costs its scenario,
        and is booted anew for the next. There is no PDR: counts do not depend on how fast a guest is, and boots are
        needed as replicates only. `PDR Should Not Have Regressed` judges. What neither build can be set up for is left
        out: the test is skipped, with the reason.

        With ``several_cpus`` the packets are also seen on a guest of several CPUs of each build, which stays up as
        well: a packet may touch no more lines that another CPU uses. What is worse there, two more boots must show,
        too. The testbed file says how many CPUs (``sut.sharing_vcpus``).

        It takes guests whose instructions are counted; builds are named as in `Compare Kernel Builds`.
        """
        session = self._state.current.session

        asked = session.options.boots
        boots = boots or (LIVING_BOOTS if asked == USUAL_BOOTS else asked)

        def comparison(task: ComparisonTask) -> PairsComparison:
            living = self._state.living.get(session)
            if living is None or not living.are_of(task.builds):
                if living is not None:
                    living.close()
                living = self._state.living[session] = LivingSuts(session, task.builds)
            self._skip_equal(session, living)
            return living_comparison_of(replace(task, plan=replace(task.plan, several_cpus=several_cpus)), living)

        self._compare(
            self._named_build, partial(self._of_kernel, session), (baseline, candidate), boots, None, budget, comparison
        )

    def _skip_equal(self, session: Session, living: LivingSuts) -> None:
        """Skip the test where its packets run the same code on the same values in both builds.

        Args:
            living: shows the values after boot; builds that are identical are not booted for that.
        """
        record, scenario = session.record, self._state.asked.name
        digests = tuple(living.builds[side].identity for side in SIDES)
        if record.selection is None or record.selection.builds != digests or not record.leaves_out(scenario):
            return
        if not record.selection.identical:
            try:
                variables = living.variables_that_differ(scenario)
            except TestbedError:
                variables = None  # the comparison finds out whose fault that is
            if variables is None or variables:
                record.note_affected(scenario, variables)
                return
            living.codes.carry_on(scenario)
        raise SkipExecution("packets run the same code in both builds")

    @keyword(name="Compare EBPF Builds")
    def compare_ebpf_builds(
        self,
        candidate: str,
        baseline: str,
        boots: int | None = None,
        tolerance: Ratio | None = None,
        budget: Duration | None = None,
        attach: Attach = "auto",
        maps: Path | None = None,
        rodata: tuple[str, ...] = (),
        kernel: str = "",
        replaces: str = "",
    ) -> None:
        """Loads two eBPF objects in turn on one kernel, and measures with each; see `Compare Kernel Builds`.

        An object holds one program of the kind that the data path runs, for XDP or tc, else ``OBJECT:PROGRAM`` names
        it. Where the data path runs none, the program is at the ports before it. Steps of the scenario may load it
        themselves, of whatever kind it is: they name it ``$BPF``. Each is loaded anew, on a testbed set
        up anew, at most ``boots`` times: where code and maps come to lie is part of what is compared.

        ``attach``, ``maps``, ``rodata`` and ``replaces`` are as in `Load EBPF Program`. ``kernel`` is a build that is
        booted under both, named as in `Compare Kernel Builds`; without it, the testbed's kernel is.

        | Compare EBPF Builds    candidate=new.o    baseline=old.o    tolerance=1%
        """
        if (own := self._state.test.scenario.program) is not None:
            raise UsageError(
                f"the scenario loads {own.name}, in whose place the compared builds would be; leave that out, or "
                "compare kernels under it"
            )
        session = self._state.current.session
        data_path = self._state.test.scenario.data_path
        steps = self._state.test.scenario.set_up
        by_steps = steps is not None and steps.loads_program
        kind = None if by_steps else DATA_PATHS[data_path].program
        setup = program_setup(attach, maps, rodata, replaces).and_then(self._state.test.setup)

        def loaded(source: str) -> BpfBuild:
            return check_setup(bpf_build(source, kind, setup, by_steps=by_steps))

        under = self._named_build(kernel) if kernel else None
        start = session.make if under is None else partial(session.boot, under)
        beneath = "" if under is None else f" on {build_identity(under)}"

        def build(side: Side, found: BpfBuild) -> Build:
            return Build(side, found.label, start, found, identity=f"{found.digest}{beneath}")

        self._compare(loaded, build, (baseline, candidate), boots, tolerance, budget)

    @keyword(name="Compare EBPF Builds On Packets")
    def compare_ebpf_builds_on_packets(
        self,
        candidate: str,
        baseline: str,
        packets: Path,
        attach: Attach = "auto",
        maps: Path | None = None,
        rodata: tuple[str, ...] = (),
        replaces: str = "",
        kernel: str = "",
    ) -> None:
        """Runs two eBPF programs on each packet of a capture, by BPF_PROG_RUN, on one kernel.

        ``packets`` is a pcap or pcapng file of Ethernet frames, 1024 at most. Each packet is run some times, with the
        packet and the maps as they were at first. What the program returns, and what it leaves of the packet, is
        compared. In a guest of constant speed the instructions of the program and of all that it calls are counted. The
        data path of the test lies beneath, so a program that asks the kernel's routing tables gets answers from it.

        Programs may be of any kind that BPF_PROG_RUN runs on a packet: XDP, tc, socket filters, cgroup_skb, sk_lookup,
        flow dissectors, LWT and netfilter. ``kernel`` is booted under both. All else is as in `Compare EBPF Builds`.

        | Compare EBPF Builds On Packets    candidate=new.o    baseline=old.o    packets=dns.pcap
        | Packets Should Be Answered Alike
        """
        session, test = self._state.current.session, self._state.test
        if test.measurement is not None:
            raise TestbedError("the scenario is being measured; run programs on packets in a test of its own")
        setup = program_setup(attach, maps, rodata, replaces).and_then(test.setup)
        first = check_setup(bpf_build(baseline, None, setup, on_packets=True))
        second = check_setup(bpf_build(candidate, first.kind, setup, on_packets=True))
        capture = PacketVectors.read(packets)
        comparison = VectorsComparison(
            session, test.scenario, {"baseline": first, "candidate": second}, capture, test=test.name,
            kernel=named_build(kernel) if kernel else None,
        )  # fmt: skip
        test.measurement = comparison
        comparison.measure()
        session.observer.said(str(comparison.judgement))
        show_scenario(comparison, (), searched=False)

    def _compare(
        self,
        found: Callable[[str], _Found],
        build: Callable[[Side, _Found], Build],
        sources: tuple[str, str],
        boots: int | None,
        tolerance: Ratio | None,
        budget: Duration | None,
        living: Callable[[ComparisonTask], PairsComparison] | None = None,
    ) -> None:
        """Compare the builds that are ``found`` by what a user calls them, the baseline's first.

        Args:
            living: makes the comparison on boots that stay up; without it, boots are the comparison's own.
        """
        session = self._state.current.session
        test = self._state.test
        if test.measurement is not None:
            raise TestbedError("the scenario is being measured; compare builds in a test of its own")
        options = session.options
        boots, budget = options.boots if boots is None else boots, options.budget if budget is None else budget
        if boots < FEWEST_BOOTS:
            raise UsageError(
                f"{boots} boots of each build tell nothing of how boots deviate; use {FEWEST_BOOTS} or more"
            )
        names = tuple(dict.fromkeys(sources))  # the same on both sides is looked for once
        with ThreadPoolExecutor(len(names)) as searches:  # apt takes its time, and so does a download
            known = dict(zip(names, searches.map(found, names), strict=True))
        check_one_architecture(one for one in known.values() if isinstance(one, KernelBuild))
        builds = {side: build(side, known[name]) for side, name in zip(SIDES, sources, strict=True)}
        session.leave()
        seconds = None if budget is None else float(budget)
        accepted = float(options.tolerance if tolerance is None else tolerance)
        plan = Plan(boots, seconds, accepted, session.config.side_by_side, self._state.to_measure)
        task = ComparisonTask(session, self._state.asked, builds, plan, test.name, test.longname)
        comparison = comparison_of(task) if living is None else living(task)
        test.measurement = comparison
        comparison.measure()
        if unable := comparison.loop.replication.unable:
            test.measurement = None
            session.observer.said(f"{test.name}: left out, {unable}")
            session.record.leave_out(test.name, unable)
            raise SkipExecution(unable)
        if options.spike_in:
            comparison.prove(spike_in(comparison))
        # Nobody has to wait for pictures, which take some seconds, to know.
        if self._state.to_measure > 1 and comparison.judgement is not None:  # of one alone the run's end says it
            session.observer.said(f"{test.name}: {comparison.judgement}")
        session.observer.said(_DRAWING)
        show_scenario(comparison, comparison.trials, searched=living is None)
        if comparison.shape is None:
            raise verdict_failure(comparison.result())

    def _of_kernel(self, session: Session, side: Side, named: KernelBuild) -> Build:
        known = named.image, named.modules, named.image.stat().st_mtime_ns
        if known not in self._identities:
            self._identities[known] = build_identity(named)
        return Build(
            side, named.label, partial(session.boot, named), counted=partial(session.boot, named, counted=True),
            identity=self._identities[known],
        )  # fmt: skip
