"""A worker that dies, a server that is silent, gone, of another version, somebody else's, or counts nonsense.

Each ends in the right trial or in a GeneratorError of one line, never in a wrong number; and the clients' habit to end
the process group of their parent never reaches this process.
"""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from trex_rig import config, paths
from trex_server import TRexServer

import pdrgate.traffic.trex.trex_generator as generator_module
from pdrgate.record.cause import CauseKind
from pdrgate.record.trial import Trial
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import GeneratorError, TestbedError

Serve = Callable[..., TRexServer]
Connect = Callable[..., TRexGenerator]
FRAMES = Frames(6)
ROOT = pathlib.Path(__file__).parents[2]


def child_of(pid: int) -> int:
    (child,) = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def is_there(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def in_mid_trial(server: TRexServer, do: Callable[[], None]) -> threading.Thread:
    """Do something shortly after the server has begun to send."""
    server.started.clear()

    def wait_and_do() -> None:
        assert server.started.wait(60)
        time.sleep(0.05)
        do()

    thread = threading.Thread(target=wait_and_do)
    thread.start()
    return thread


def lost_in(trial: Trial) -> list[str]:
    """Words of each loss of the generator: that a machine is busy, which others use as well, is another cause."""
    return [cause.words for cause in trial.seen.disturbed if cause.kind is CauseKind.GENERATOR_LOST]


@pytest.fixture
def terminations() -> Iterator[list[int]]:
    """SIGTERMs that this process got, which would otherwise have ended it."""
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    yield got
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("who", ["worker", "supervisor"])
def test_the_trial_of_a_killed_worker_is_repeated(serve: Serve, connect: Connect, who: str) -> None:
    server = serve()
    generator = connect(server)
    supervisor = generator.pid
    assert supervisor is not None
    worker = child_of(supervisor)
    victim = worker if who == "worker" else supervisor
    thread = in_mid_trial(server, lambda: os.kill(victim, signal.SIGKILL))
    trial = generator.trial(100e3, 0.5, FRAMES)
    thread.join()
    assert (trial.offered, trial.forwarded, trial.aside.stray) == (50_000, 50_000, 0)
    # What was lost on the way is told by all reports, and the trial is no evidence against the SUT.
    (words,) = lost_in(trial)
    assert words.startswith("the generator was lost, and the trial made again (TRex at 127.0.0.1:")
    assert lost_in(generator.trial(10e3, 0.1, FRAMES)) == []
    assert len(server.seen) == 3  # the ports of the dead worker were taken up without force
    assert generator.pid not in (None, supervisor)
    until(lambda: not is_there(worker) and not is_there(supervisor))
    generator.close()
    assert [port.owner for port in server.ports] == ["", ""]


def test_when_the_client_ends_its_parent_s_group_that_is_not_ours(
    serve: Serve, connect: Connect, terminations: list[int]
) -> None:
    """trex-stl-lib does so when the server was silent for 3 s; afterwards the trial is repeated."""
    server = serve()
    generator = connect(server)
    first = generator._worker
    assert first is not None
    assert os.getpgid(first.pid) == first.pid == os.getsid(first.pid)
    assert os.getpgid(child_of(first.pid)) == first.pid

    def silence() -> None:
        server.faults.silent = True
        until(lambda: first._program._process.poll() is not None)
        server.faults.silent = False

    thread = in_mid_trial(server, silence)
    trial = generator.trial(100e3, 0.5, FRAMES)
    thread.join()
    assert (trial.offered, trial.forwarded) == (50_000, 50_000)
    assert first._program._process.returncode == -signal.SIGTERM  # it was the client: we only ever send SIGKILL
    assert terminations == []
    assert generator._worker is not first


def test_a_server_that_stays_silent(
    server: TRexServer, generator: TRexGenerator, monkeypatch: pytest.MonkeyPatch, terminations: list[int]
) -> None:
    monkeypatch.setattr(generator_module, "ANSWER", 0.5)
    monkeypatch.setattr(generator_module, "OPENING", 2.0)
    thread = in_mid_trial(server, lambda: setattr(server.faults, "silent", True))
    with pytest.raises(
        GeneratorError, match=rf"^TRex at 127.0.0.1:{server.sync_port}: the TRex client did not answer within 2 s and "
    ):
        generator.trial(10e3, 0.2, FRAMES)
    thread.join()
    assert generator.pid is None
    assert terminations == []


def test_a_server_that_dies_in_mid_trial(serve: Serve, connect: Connect, terminations: list[int]) -> None:
    server = serve()
    generator = connect(server)
    thread = in_mid_trial(server, server.die)
    with pytest.raises(
        GeneratorError,
        match=rf"^no TRex server at 127.0.0.1:{server.sync_port}: Connection refused; start it there: ./t-rex-64 -i",
    ):
        generator.trial(10e3, 0.2, FRAMES)
    thread.join()
    assert terminations == []


def test_a_server_that_is_late_with_its_answers(server: TRexServer, generator: TRexGenerator) -> None:
    server.faults.late = 0.01
    trial = generator.trial(100e3, 0.3, FRAMES)
    assert (trial.offered, trial.forwarded, trial.sending_time) == (30_000, 30_000, 0.3)


def test_no_server_at_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(TestbedError, match=rf"^no TRex server at 127.0.0.1:{port}: Connection refused; start it"):
        TRexGenerator(TRexConfig("127.0.0.1", sync_port=port), paths())


def test_something_else_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator_module, "OPENING", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(TestbedError, match=r"did not answer within 3 s and was ended; see whether the server"):
            TRexGenerator(TRexConfig("127.0.0.1", sync_port=port), paths())


def test_client_and_server_of_different_versions(serve: Serve) -> None:
    server = serve(api="5.1")
    with pytest.raises(TestbedError) as caught:
        TRexGenerator(config(server), paths())
    assert str(caught.value) == (
        f"TRex at 127.0.0.1:{server.sync_port}: the TRex server speaks API 5.1, trex-stl-lib speaks 4.1; "
        "set client: to the automation/trex_control_plane/interactive folder of the server's release"
    )


def test_a_port_of_somebody_else_is_left_alone(serve: Serve, connect: Connect) -> None:
    server = serve()
    server.take(1, "alice")
    with pytest.raises(TestbedError, match=r": a port is held: 1 by 'alice'; have them released, or set force: true$"):
        connect(server)
    assert [port.owner for port in server.ports] == ["", "alice"]
    generator = connect(server, force=True)
    assert generator.trial(10e3, 0.1, FRAMES).forwarded == 1000
    assert [port.owner for port in server.ports] == ["pdrgate", "pdrgate"]


def test_another_run_of_the_same_user_is_somebody_else(
    server: TRexServer, generator: TRexGenerator, connect: Connect
) -> None:
    with pytest.raises(TestbedError, match=r": ports are held: 0 by 'pdrgate', 1 by 'pdrgate'; have them released"):
        connect(server)
    assert generator.trial(10e3, 0.1, FRAMES).forwarded == 1000


def test_a_port_that_is_taken_in_mid_trial(serve: Serve, connect: Connect) -> None:
    server = serve()
    generator = connect(server)
    thread = in_mid_trial(server, lambda: server.take(1, "mallory"))
    with pytest.raises(GeneratorError, match=r": port 1 was taken by 'mallory' during the trial; have them released"):
        generator.trial(10e3, 0.3, FRAMES)
    thread.join()
    generator.close()
    assert [port.owner for port in server.ports] == ["", "mallory"]


def test_a_port_that_the_server_lacks(serve: Serve, connect: Connect) -> None:
    with pytest.raises(TestbedError, match=r": the TRex server has no port 7, it has 0, 1$"):
        connect(serve(), ports=(0, 1, 7))


def jumps(times: int, method: str, change: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """Spoils the counters after a run, so many times."""
    left = [times]

    def wrong(called: str, result: Any) -> Any:
        if called == method and left[0] and change(result) is not None:
            left[0] -= 1
            return change(result)
        return result

    return wrong


def back(result: Any) -> Any:
    return result | {"opackets": result["opackets"] // 2} if result["opackets"] >= 1000 else None


def absurd(result: Any) -> Any:
    flows = result["flow_stats"]
    if not any(flow["tp"]["0"] >= 1000 for flow in flows.values()):
        return None
    return result | {"flow_stats": {group: flow | {"rp": {"1": 2**62}} for group, flow in flows.items()}}


def test_counters_that_jump_are_not_believed(serve: Serve, connect: Connect) -> None:
    server = serve()
    generator = connect(server)
    generator.trial(10e3, 0.1, FRAMES)
    server.faults.wrong = jumps(10_000, "get_pgid_stats", absurd)
    with pytest.raises(GeneratorError, match=r"counts what cannot be: \d+ packets are said .*; restart the server"):
        generator.trial(10e3, 0.1, FRAMES)
    server.faults.wrong = lambda method, result: result
    assert generator.trial(10e3, 0.1, FRAMES).forwarded == 1000


def test_counters_that_jump_once_cost_one_trial(serve: Serve, connect: Connect) -> None:
    server = serve()
    generator = connect(server)
    generator.trial(10e3, 0.02, FRAMES)
    # All readings that find the whole trial counted, after its end, halve it; those of the repeated one do not.
    spoiled = []

    def once(method: str, result: Any) -> Any:
        if method == "get_port_stats" and len(server.seen) == 2 and result["opackets"] >= 1200:
            spoiled.append(method)
            return result | {"opackets": 100}
        return result

    server.faults.wrong = once
    trial = generator.trial(10e3, 0.1, FRAMES)
    assert spoiled
    assert "counted port0.opackets" in trial.seen.disturbed[0].words
    assert (trial.offered, trial.forwarded, trial.unsent) == (1000, 1000, 0)
    assert len(server.seen) == 3


def test_a_server_that_refuses_the_streams(server: TRexServer, generator: TRexGenerator) -> None:
    def refuse(method: str, result: Any) -> Any:
        from trex_server import RpcError

        if method == "start_traffic":
            raise RpcError("Interface is in the middle of configuration")
        return result

    server.faults.wrong = refuse
    with pytest.raises(GeneratorError, match=r": .*Interface is in the middle of configuration and again$"):
        generator.trial(10e3, 0.1, FRAMES)


def test_a_folder_without_a_client(tmp_path: pathlib.Path, serve: Serve) -> None:
    with pytest.raises(TestbedError, match=rf": {tmp_path} holds no trex/stl; give the release's automation/"):
        TRexGenerator(config(serve(), client=tmp_path), paths())


def test_a_client_that_cannot_be_loaded(tmp_path: pathlib.Path, serve: Serve) -> None:
    package = tmp_path / "trex" / "stl"
    package.mkdir(parents=True)
    (package / "api.py").write_text("import a_module_that_nobody_has\n")
    with pytest.raises(TestbedError, match=rf"the client in {tmp_path} cannot be loaded by .*: No module named 'a_mod"):
        TRexGenerator(config(serve(), client=tmp_path), paths())


def test_an_interpreter_that_is_none(tmp_path: pathlib.Path, serve: Serve) -> None:
    with pytest.raises(
        TestbedError, match=r"^TRex at \S+: \S+ cannot run the TRex client: No such file or directory; name a"
    ):
        TRexGenerator(config(serve(), interpreter=tmp_path / "python2"), paths())


def test_what_the_client_prints_is_no_answer(tmp_path: pathlib.Path, serve: Serve) -> None:
    package = tmp_path / "trex" / "stl"
    package.mkdir(parents=True)
    (package / "api.py").write_text('import os\nprint("hello")\nos.write(1, b"{}\\n")\nos._exit(3)\n')
    with pytest.raises(TestbedError, match=r"the TRex client has ended \(exit code 3: \{\}\)"):
        TRexGenerator(config(serve(), client=tmp_path), paths())


RUN = """
    import sys, os
    sys.path[:0] = {folders!r}
    from trex_rig import paths
    from pdrgate.traffic.frames import Frames
    from pdrgate.traffic.trex import TRexGenerator
    from pdrgate.traffic.trex.trex_config import TRexConfig
    generator = TRexGenerator(
        TRexConfig("127.0.0.1", sync_port={sync_port}, async_port={async_port}, warm_up=0.0), paths()
    )
    print(generator.pid, flush=True)
    try:
        generator.trial(1e4, 60.0, Frames(6))
    except KeyboardInterrupt:
        generator.close()
        print("closed", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_when_we_end_in_mid_trial_traffic_ends_and_the_ports_are_free(serve: Serve, how: signal.Signals) -> None:
    server = serve()
    folders = [str(ROOT / "libraries"), str(ROOT / "tests" / "fakes")]
    script = textwrap.dedent(RUN).format(folders=folders, sync_port=server.sync_port, async_port=server.async_port)
    with subprocess.Popen(
        (sys.executable, "-c", script), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stdout is not None
        supervisor = int(run.stdout.readline())
        worker = child_of(supervisor)
        assert server.started.wait(60)
        run.send_signal(how)
        assert run.stdout.read() == ("" if how == signal.SIGKILL else "closed\n")
        assert run.wait(60) == (-how if how == signal.SIGKILL else 0)
    until(lambda: not is_there(worker) and not is_there(supervisor))
    assert [(port.owner, port.state) for port in server.ports] == [("", "IDLE"), ("", "IDLE")]
    assert server.ports[0].sent_before < 1e4 * 30


def test_a_worker_s_interpreter_needs_no_pdrgate(tmp_path: pathlib.Path, serve: Serve, connect: Connect) -> None:
    """The worker finds its own modules by their place, whatever the interpreter's path holds."""
    wrapper = tmp_path / "python"
    wrapper.write_text(
        f'#!/bin/sh\nPYTHONPATH="{os.pathsep.join(path for path in sys.path if "site-packages" in path)}" '
        f'exec {sys.executable} -S "$@"\n'  # without site: no .pth file leads to pdrgate
    )
    wrapper.chmod(0o755)
    assert connect(serve(), interpreter=wrapper).trial(10e3, 0.05, FRAMES).forwarded == 500
