"""Guests stay up from scenario to scenario: equal builds cost the same, a slower one is named, a dead one replaced."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from vm_session import vm_session
from wrong_routers import router

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, Planted
from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.selection_file import code_key
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds.vm.standing_guest import StandingGuest

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PLAIN = Scenario("ipv4-routing")
NAT = Scenario(
    "ip-routing",
    set_up=set_up_of((
        "nft 'add table ip gate; add chain ip gate leaving { type nat hook postrouting priority srcnat; }'",
        "nft add rule ip gate leaving oifname $OUT masquerade",
    )),
)  # fmt: skip
PROGRAM = Scenario("xdp-ipv6-routing")
LACKING = Scenario("ip-routing", set_up=set_up_of(("no-such-program --at-all",)))


def test_paths_are_counted_one_after_the_other_on_the_same_guests(cloud: KernelBuild, tmp_path: Path) -> None:
    with vm_session(tmp_path) as session:
        builds = {
            side: Build(side, name, partial(session.boot, cloud, counted=True))
            for side, name in zip(SIDES, "ab", strict=True)
        }
        suts = LivingSuts(session, builds)

        def counted(scenario: Scenario, longname: str) -> PairsComparison:
            # The tolerance of the cost is the run's; few pairs show what this is about.
            made = living_comparison_of(
                ComparisonTask(session, scenario, suts.builds, Plan(2, 600, 0.5), longname=longname), suts
            )
            made.run()
            return made

        first = counted(PLAIN, "first")
        up = suts.pairs((1, 2))
        states = {one: NetworkState.of(testbed.hops[0].host) for one, testbed in up.items()}
        nat = counted(NAT, "second")
        assert suts.pairs((1, 2)) == up
        for one, testbed in up.items():  # what the scenario stood on is still there, and nothing else
            left = states[one].new_in(NetworkState.of(testbed.hops[0].host))
            assert {kind for kind, _ in left} == {"address", "neighbour", "route", "IPv6 route"}
        # What neither build can be set up for costs no boot.
        lacking = counted(LACKING, "third")
        assert lacking.judgement is not None
        assert lacking.judgement.verdict is Verdict.ERROR
        assert "step 1 of the set-up, `no-such-program --at-all`, failed" in lacking.judgement.reason
        assert not lacking.loop.replication.unable
        assert not lacking.boots
        assert suts.pairs((1, 2)) == up
        last = counted(PLAIN, "fourth")
        assert suts.pairs((1, 2)) == up
        assert {one: NetworkState.of(testbed.hops[0].host) for one, testbed in up.items()} == states
        for one in (first, nat, last):
            assert one.judgement is not None
            assert one.judgement.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
        for side in SIDES:
            costs = [one.samples("cost", side)[0] for one in (first, nat, last)]
            assert costs[1] > 1.1 * costs[0]
            assert costs[2] == pytest.approx(costs[0], rel=0.02)
        # A slower build on the same guests: the planted fault.
        suts.builds["candidate"] = replace(suts.builds["candidate"], planted=Planted(EGRESS_FILTER, 1000))
        slower = counted(PLAIN, "fifth")
        assert slower.judgement is not None
        assert slower.judgement.verdict is Verdict.REGRESSION
        assert "instructions" in slower.judgement.reason
        suts.builds["candidate"] = builds["candidate"]
        # One that dies costs its scenario alone.
        dead = suts.pairs((1,))["candidate", 1]
        assert isinstance(dead, StandingGuest)
        os.kill(dead.testbed.guest.pid, signal.SIGKILL)
        died = counted(PLAIN, "sixth")
        assert [one.side for one in died.boots if one.failure] == ["candidate"]
        assert died.samples("cost", "candidate")
        assert suts.pairs((1,))["candidate", 1] is not dead
        # Four paths have shown what a packet costs: of a further one a pair is enough, unless it lies off by chance.
        for one in (first, nat, last, slower):
            assert one.loop.found.pairs == 2
        further = counted(NAT, "seventh")
        assert further.judgement is not None
        assert further.judgement.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
        assert ("one pair of boots" in further.judgement.reason) == (further.loop.found.pairs == 1)
    # The run is continued: what two paths came to on the same boots is taken over, and no guest is asked again.
    with vm_session(tmp_path, resume=True) as session:
        suts = LivingSuts(session, builds)
        for before, name in ((first, "first"), (nat, "second")):
            after = living_comparison_of(
                ComparisonTask(session, before.scenario, suts.builds, Plan(2, 600, 0.5), longname=name), suts
            )
            after.run()
            assert after.boots == before.boots
            assert after.judgement == before.judgement
            told, was = (one.result().builds.sides[0].findings.cost for one in (after, before))
            assert told is not None
            assert was is not None
            assert told.functions == was.functions


def test_what_the_kernel_refuses_of_the_candidate_alone_is_a_regression(cloud: KernelBuild, tmp_path: Path) -> None:
    with vm_session(tmp_path) as session:
        refused = router(tmp_path, "return *(unsigned char *)(end + 1);", "refused")
        builds = {
            side: Build(side, name, partial(session.boot, cloud, counted=True), program)
            for side, name, program in zip(SIDES, "ab", (None, refused), strict=True)
        }
        suts = LivingSuts(session, builds)
        made = living_comparison_of(
            ComparisonTask(session, PROGRAM, suts.builds, Plan(2, 600, 0.5), PROGRAM.name, PROGRAM.name), suts
        )
        made.run()
        assert made.judgement is not None
        assert made.judgement.verdict is Verdict.REGRESSION
        assert made.judgement.reason.startswith("the candidate's program does not load, and the baseline's does: ")
        assert "the verifier says: " in made.judgement.reason
        assert (made.loop.replication.unable, made.boots, made.trials) == ("", [], ())


def test_what_kernels_run_on_a_path_is_kept_and_what_boot_left_otherwise_is_seen(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    experience = Experience(Address(file=tmp_path / "history.db"))
    with vm_session(tmp_path, experience=experience) as session:
        builds = {
            side: Build(side, side, partial(session.boot, cloud, counted=True), identity=f"digest of the {side}")
            for side in SIDES
        }
        suts = LivingSuts(session, builds)
        living_comparison_of(ComparisonTask(session, PLAIN, suts.builds, Plan(2, 600, 0.5)), suts).run()
        for side in SIDES:
            code = experience.path_codes(code_key(f"digest of the {side}", session.config))[PLAIN.name]
            assert {"ip_forward", "ip_rcv_core"} <= code.packets
            assert "inet_rtm_newaddr" in code.set_up
            assert "init_net" in code.variables
            assert "version_proc_show" not in code.set_up
            assert not code.set_up & code.packets
        assert suts.variables_that_differ(PLAIN.name) == ()
        assert suts.variables_that_differ(NAT.name) is None
        for (side, _), testbed in suts.pairs((1, 2)).items():
            if side == "candidate":
                testbed.hops[0].host.run("sysctl", "-w", "net.ipv4.ip_default_ttl=65")
        assert "init_net" in suts.codes.boot_differences(suts.pairs((1, 2)))[PLAIN.name]
