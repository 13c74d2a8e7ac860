"""What counts as handled in a guest: by what is taken from its TAPs, which the guest cannot forge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from flat_values import changed

from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.probe import probe_path
from pdrgate.observers.fates import by_fate
from pdrgate.observers.reading import nested
from pdrgate.record.fate import Fate
from pdrgate.record.trial import Trial
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.errors import SutError

pytestmark = pytest.mark.guest

VERDICTS = {"dropped": "XDP_DROP", "returned": "XDP_TX", "passed": "XDP_PASS"}


def program(folder: Path, verdict: str) -> Path:
    source, output = folder / "some.bpf.c", folder / "some.bpf.o"
    source.write_text(
        f'#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nchar _license[] SEC("license") = "GPL";\n'
        f'SEC("xdp") int some(struct xdp_md *ctx) {{ return {verdict}; }}\n'
    )
    include = "-I/usr/include/x86_64-linux-gnu"
    subprocess.run(("clang", "-O2", "-g", "-target", "bpf", include, "-c", str(source), "-o", str(output)), check=True)
    return output


def measured(testbed: VmTestbed, scenario: Scenario, load: float) -> Trial:
    generator = testbed.generator(scenario.frames.family)
    try:
        before = testbed.counters()
        sent = generator.trial(load, 0.25, scenario.frames)
        counted = changed(sent, counters_before=nested(before), counters_after=nested(testbed.counters()))
        return by_fate(counted, scenario.counts)
    finally:
        generator.close()


@pytest.mark.parametrize("fate", VERDICTS)
def test_each_packet_has_the_fate_that_its_program_gives_it(shared_testbed, cloud, tmp_path: Path, fate: Fate) -> None:
    testbed = shared_testbed(cloud)
    scenario = Scenario("xdp-ipv6-routing", fate=fate)
    path = data_path(scenario.data_path, program(tmp_path, VERDICTS[fate]), fate=fate)
    generator = testbed.generator(6)
    try:
        path.apply(testbed.hops)
        assert path.mode == "XDP native (virtio_net)"
        assert probe_path(path, testbed, generator, scenario.frames, fate).forwarded
        other: Fate = "returned" if fate == "dropped" else "dropped"
        asked = Scenario(scenario.data_path, fate=other)
        if fate == "dropped":
            with pytest.raises(SutError, match=r"sends back none of \d+ .*: --set fate=dropped\?"):
                probe_path(path, testbed, generator, asked.frames, other)
        else:
            left = probe_path(path, testbed, generator, asked.frames, other)
            assert (left.aside.returned, left.forwarded) == (left.offered, 0)
        generator.close()
        calm, flooded = measured(testbed, scenario, 2e3), measured(testbed, scenario, 500e3)
    finally:
        generator.close()
        assert path.restore() == []
    assert (calm.forwarded, calm.steady_loss_ratio) == (calm.offered, 0)
    assert calm.offered > 0
    assert 0 < flooded.forwarded < flooded.offered
    if fate != "returned":
        taken = flooded.seen.counter_changes["tg/t0"]["tx_packets"]
        assert flooded.forwarded == taken
        assert flooded.drained > 0
