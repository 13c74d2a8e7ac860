"""Testbed files: which generator and which SUT a run has. An error in one names its file, line and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdrgate.errors import TestbedError
from pdrgate.guests.metering import CpuSpeed
from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.testbeds.config import GeneratorConfig, TestbedConfig
from pdrgate.testbeds.file_faults import TREX, faults
from pdrgate.testbeds.kinds import KINDS, HostConfig, PortConfig, Rack, StationConfig
from pdrgate.testbeds.yaml_lines import parse
from pdrgate.traffic.trex.trex_config import TRexConfig


def load_testbed(path: Path | str) -> TestbedConfig:
    """Read a testbed file.

    Raises:
        TestbedError: the file cannot be read, is no YAML, or does not follow the schema; the first fault is told, with
            line and key, and the number of the others.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TestbedError(
            f"{source}: cannot read it: {error.strerror}; name a testbed file such as "
            "resources/testbeds/local-netns.yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise TestbedError(f"{source}: is no UTF-8 text; name a testbed file in YAML") from error
    try:
        content, lines = parse(source, text)
        _knobs_by_text(content)
        wrong = faults(content, lines)
    except RecursionError:
        raise TestbedError(
            f"{source}: is nested too deeply for a testbed; start from resources/testbeds/local-netns.yaml"
        ) from None
    if wrong:
        line, key, problem = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise TestbedError(f"{source}:{line}: {key}: {problem}{more}")
    return _made(source, content)


def _made(source: Path, content: Mapping[str, Any]) -> TestbedConfig:
    """The testbed of a content without faults: the schema has the types and ranges, the kinds have the defaults."""
    sut = content.get("sut", {})
    cpus = sut.get("cpus", "auto")
    shared = {
        "name": content["name"],
        "source": source,
        "generator": _generator(source, content["generator"]),
        "cpus": None if cpus == "auto" else tuple(sorted(int(cpu) for cpu in cpus)),
        **{key: sut[key] for key in ("isolate", "knobs") if key in sut},
    }
    kind = KINDS[content["kind"]]
    if kind is Rack:
        sut = {**sut, "host": _host(source, sut["host"]), "ports": tuple(map(_port, sut["ports"]))}
        if "station" in content:
            sut["station"] = _station(source, content["station"])
    if "cpu_speed" in sut:
        sut = {**sut, "cpu_speed": _speed(sut["cpu_speed"])}
    own = kind.__dataclass_fields__.keys() - TestbedConfig.__dataclass_fields__.keys()
    return kind(**shared, **{key: _whole(value) for key, value in sut.items() if key in own})


def _speed(value: int | str) -> CpuSpeed:
    """Instructions/s; the schema has let through nothing else."""
    match value:
        case "auto" | "full" | int():
            return value
        case _:
            return int(value.removesuffix("MIPS")) * 1_000_000


def _whole(value: Any) -> Any:
    """To the schema 2.0 is an integer; no value of a SUT itself is a fraction."""
    return int(value) if isinstance(value, float) else value


def _generator(source: Path, generator: Mapping[str, Any]) -> GeneratorConfig:
    cpu = generator.get("cpu", "auto")
    return GeneratorConfig(
        kind=generator["kind"],
        engine=generator.get("engine", "auto"),
        cpu=None if cpu == "auto" else int(cpu),
        ports=tuple(map(str, generator.get("ports", (0, 1) if generator["kind"] == TREX else ()))),
        namespace=generator.get("namespace"),
        trex=_trex(source, generator) if generator["kind"] == TREX else None,
    )


def _host(source: Path, host: Mapping[str, Any], alias: str = "sut") -> HostConfig:
    ssh = _ssh(source, {"alias": alias, **host}) if host["kind"] == "ssh" else None
    return HostConfig(host["kind"], ssh, host.get("namespace"))


def _station(source: Path, station: Mapping[str, Any]) -> StationConfig:
    cpu = station.get("cpu", "auto")
    host = _host(source, station["host"], alias="station")
    return StationConfig(host, station["interface"], None if cpu == "auto" else int(cpu))


def _port(port: Mapping[str, str]) -> PortConfig:
    # The kernel writes addresses in small letters.
    return PortConfig(**{key: value if key == "interface" else value.lower() for key, value in port.items()})


def _ssh(source: Path, host: Mapping[str, Any]) -> SshTarget:
    alias = host["alias"]
    made = {key: host[key] for key in SshTarget.__dataclass_fields__ if key in host}
    made |= {key: _file(source, host[key]) for key in ("key", "known_hosts") if key in host}
    if "jump" in host:
        made["jump"] = _ssh(source, {"alias": f"{alias}-jump", **host["jump"]})
    return SshTarget(**made | {"alias": alias})


def _trex(source: Path, generator: Mapping[str, Any]) -> TRexConfig:
    made = {key: generator[key] for key in TRexConfig.__dataclass_fields__ if key in generator}
    made |= {key: _file(source, generator[key]) for key in ("client", "interpreter") if key in generator}
    made["pcap"] = tuple(_file(source, name) for name in generator.get("pcap", ()))
    return TRexConfig(**made | {"ports": tuple(generator.get("ports", (0, 1)))})


def _file(source: Path, name: str) -> Path:
    """A file that a testbed file names: relative ones lie next to it."""
    return source.absolute().parent / Path(name).expanduser()


def _knobs_by_text(content: Mapping[str, Any]) -> None:
    """Give the section of knobs text for its keys, which are matched by patterns; YAML reads some as numbers."""
    if isinstance(content.get("sut"), dict) and "knobs" in content["sut"]:
        content["sut"]["knobs"] = _text_keys(content["sut"]["knobs"])


def _text_keys(value: Any, depth: int = 4) -> Any:
    if depth and isinstance(value, dict):
        return {str(key): _text_keys(one, depth - 1) for key, one in value.items()}
    return value
