"""TestbedConfig files: which generator and which SUT a run has. An error in one names its file, line and key.

The keys are defined in schemas/testbed.schema.json, whose descriptions are what an error tells to write instead.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal

import jsonschema
import yaml

from pdrgate.errors import TestbedError
from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.knobs import contradictions, sysctls
from pdrgate.traffic.trex.config import TRexConfig

RACK = "rack"
"""The kind of testbeds that are put together from a host and ports that are there already."""

VM = "local-vm"
"""The kind of testbeds whose SUT is a guest that boots kernel builds."""

TREX = "trex"
"""The kind of generator that is a TRex server."""

_Key = tuple[str | int, ...]
_UNKNOWN = "unknown key"


@dataclass(frozen=True, slots=True)
class GeneratorConfig:
    """The generator's part of a testbed file. ``cpu`` is None where the file says auto."""

    kind: str
    engine: str = "auto"
    cpu: int | None = None
    ports: tuple[str, ...] = ()
    """On a rack: interfaces of this machine, or port numbers of a TRex server."""
    namespace: str | None = None
    """The network namespace of this machine that the ports are in."""
    trex: TRexConfig | None = None
    """The TRex server, where that is the generator."""


@dataclass(frozen=True, slots=True)
class VmConfig:
    """The guest of a testbed file of kind local-vm."""

    kernel: str | None = None
    """What is booted when no build is handed over; see `pdrgate.builds.kernel_build.named_build`."""
    vcpus: int = 1
    memory: int = 512
    """MiB."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    ring: int = 256
    """Packets that each port's receive ring holds."""
    cmdline: str = ""
    """Further words for the kernel's command line."""


@dataclass(frozen=True, slots=True)
class HostConfig:
    """How a host is reached: by SSH, as this machine, or as a network namespace."""

    kind: Literal["ssh", "local", "netns"]
    ssh: SshTarget | None = None
    namespace: str | None = None
    """The network namespace, of this machine or of the one reached by SSH, that the SUT's ports are in."""


@dataclass(frozen=True, slots=True)
class PortConfig:
    """A port of the SUT by interface, MAC address or PCI address: one of the three."""

    interface: str | None = None
    mac: str | None = None
    pci: str | None = None
    faces: str | None = None
    """The MAC address of the generator's port at the other end; None where that can be read."""


@dataclass(frozen=True, slots=True)
class RackConfig:
    """The SUT of a testbed file of kind rack."""

    host: HostConfig
    ports: tuple[PortConfig, PortConfig]
    buffer: Literal["auto", "ring", "backlog"] = "auto"
    """What a scenario's receive buffer is; auto: the receive ring where the driver has one that can be set."""
    steering: Literal["auto", "irq", "rps"] = "auto"
    """How packet work gets to a scenario's CPUs; auto: by interrupt affinity where the ports have interrupts."""


@dataclass(frozen=True, slots=True)
class SutConfig:
    """The SUT's part of a testbed file. ``cpus`` is None where the file says auto."""

    hops: int
    cpus: tuple[int, ...] | None = None
    isolate: bool = True
    """Whether packet work goes before other processes on the SUT's CPUs."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """The file's own section of settings, for `pdrgate.knobs.plan_knobs`."""
    vm: VmConfig | None = None
    """The guest, where the SUT is one."""
    rack: RackConfig | None = None
    """The host and its ports, where the SUT is no namespace and no guest of ours."""


@dataclass(frozen=True, slots=True)
class TestbedConfig:
    """A testbed file that was found valid."""

    __test__: ClassVar[bool] = False  # the name begins like a test class; pytest must not collect it

    name: str
    kind: str
    generator: GeneratorConfig
    sut: SutConfig
    source: Path

    def with_password(self, password: str) -> TestbedConfig:
        """The same with a password for the SUT's host. Raises TestbedError when that is not reached by SSH."""
        rack = self.sut.rack
        if rack is None or rack.host.ssh is None:
            raise TestbedError(f"testbed {self.name} needs no password: its SUT is not reached by SSH; leave it out")
        host = replace(rack.host, ssh=replace(rack.host.ssh, password=password))
        return replace(self, sut=replace(self.sut, rack=replace(rack, host=host)))


def load_testbed(path: Path | str) -> TestbedConfig:
    """Read a testbed file.

    Raises:
        TestbedError: the file cannot be read, is no YAML, or does not follow the schema; the first fault is told, with
            line and key, and the number of the others.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise TestbedError(
            f"{source}: cannot read it: {error.strerror}; name a testbed file such as "
            "resources/testbeds/local-netns.yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise TestbedError(f"{source}: is no UTF-8 text; name a testbed file in YAML") from error
    content, lines = _parse(source, text)
    # An unknown key first: it mostly is why another one is missing.
    faults = sorted(set(_faults(content, lines)), key=lambda fault: (not fault[2].startswith(_UNKNOWN), fault))
    if faults:
        line, key, problem = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise TestbedError(f"{source}:{line}: {key}: {problem}{more}")
    return _testbed(source, content)


def _testbed(source: Path, content: Mapping[str, Any]) -> TestbedConfig:
    generator, sut = content["generator"], content.get("sut", {})
    cpu, cpus = generator.get("cpu", "auto"), sut.get("cpus", "auto")
    return TestbedConfig(
        name=content["name"],
        kind=content["kind"],
        generator=GeneratorConfig(
            kind=generator["kind"],
            engine=generator.get("engine", "auto"),
            cpu=None if cpu == "auto" else int(cpu),
            ports=tuple(map(str, generator.get("ports", (0, 1) if generator["kind"] == TREX else ()))),
            namespace=generator.get("namespace"),
            trex=_trex(source, generator) if generator["kind"] == TREX else None,
        ),
        sut=SutConfig(
            hops=int(sut.get("hops", 1)),
            cpus=None if cpus == "auto" else tuple(sorted(int(cpu) for cpu in cpus)),
            isolate=bool(sut.get("isolate", True)),
            knobs=sut.get("knobs", {}),
            vm=_vm(sut) if content["kind"] == VM else None,
            rack=_rack(source, sut) if content["kind"] == RACK else None,
        ),
        source=source,
    )


def _vm(sut: Mapping[str, Any]) -> VmConfig:
    # The schema has the types and ranges, VmConfig the defaults.
    return VmConfig(**{key: sut[key] for key in VmConfig.__dataclass_fields__ if key in sut})


def _rack(source: Path, sut: Mapping[str, Any]) -> RackConfig:
    host, (first, second) = sut["host"], sut["ports"]
    return RackConfig(
        HostConfig(host["kind"], _ssh(source, host) if host["kind"] == "ssh" else None, host.get("namespace")),
        (_port(first), _port(second)),
        **{key: sut[key] for key in ("buffer", "steering") if key in sut},
    )


def _port(port: Mapping[str, str]) -> PortConfig:
    # The kernel writes addresses in small letters.
    return PortConfig(**{key: value if key == "interface" else value.lower() for key, value in port.items()})


def _ssh(source: Path, host: Mapping[str, Any]) -> SshTarget:
    alias = host.get("alias", "sut")
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


def _parse(source: Path, text: str) -> tuple[dict[str, Any], dict[_Key, int]]:
    """The content of a YAML text, and for each key of it (as a path) the line it stands on."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise TestbedError(f"{source}:1: the file is empty; start from resources/testbeds/local-netns.yaml")
        lines = dict(_lines(source, node, (), node.start_mark.line + 1, set()))
        content = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        raise TestbedError(f"{source}:{at}: is no YAML: {error.problem}; check indentation and colons there") from error
    except yaml.YAMLError as error:
        raise TestbedError(f"{source}: is no YAML: {error}") from error
    if not isinstance(content, dict):
        raise TestbedError(
            f"{source}:{lines[()]}: {_brief(content)} is no testbed; start with lines such as `name: local-netns`"
        )
    if isinstance(content.get("sut"), dict) and "knobs" in content["sut"]:
        content["sut"]["knobs"] = _text_keys(content["sut"]["knobs"])
    return content, lines


def _text_keys(value: Any, depth: int = 4) -> Any:
    """The section of knobs with text for its keys, which are matched by patterns; YAML reads some as numbers."""
    if depth and isinstance(value, dict):
        return {str(key): _text_keys(one, depth - 1) for key, one in value.items()}
    return value


def _lines(source: Path, node: yaml.Node, key: _Key, line: int, met: set[int]) -> Iterator[tuple[_Key, int]]:
    """Where each key of the file stands. Raises TestbedError at a key given twice, where YAML would take the last."""
    yield key, line
    if id(node) in met:  # an alias, perhaps to what it stands in
        return
    met.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for name, value in node.value:
            at = name.start_mark.line + 1
            word = str(name.value)
            full = (*key, word)
            if word in seen:
                raise TestbedError(
                    f"{source}:{at}: {_shown(full)}: is there twice, also in line {seen[word]}; keep one"
                )
            seen[word] = at
            yield from _lines(source, value, full, at, met)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(source, value, (*key, index), value.start_mark.line + 1, met)


def _faults(content: Mapping[str, Any], lines: Mapping[_Key, int]) -> Iterator[tuple[int, str, str]]:
    """All faults as line, key and problem."""
    schema = json.loads(resources.files("pdrgate").joinpath("schemas/testbed.schema.json").read_text())
    faulty = False
    for error in jsonschema.Draft202012Validator(schema).iter_errors(content):
        faulty = True
        key = tuple(error.absolute_path)
        for part, problem in _problems(error):
            full = (*key, *part)
            yield _line(full, lines), _shown(full), problem
    if not faulty:
        yield from _contradictions(content, lines)


def _contradictions(content: Mapping[str, Any], lines: Mapping[_Key, int]) -> Iterator[tuple[int, str, str]]:
    """What no schema can say of a file that follows it."""
    cpu, cpus = content["generator"].get("cpu", "auto"), content.get("sut", {}).get("cpus", "auto")
    # A SUT reached by SSH has CPUs of its own.
    if cpus != "auto" and cpu in cpus and content["sut"].get("host", {}).get("kind") != "ssh":
        yield (
            _line(("sut", "cpus"), lines),
            "sut.cpus",
            f"CPU {cpu} is the generator's too (generator.cpu); the two must not share one",
        )
    yield from _rack_contradictions(content, lines)
    whole_machine = content["kind"] == RACK and "namespace" not in content["sut"]["host"]
    section = content.get("sut", {}).get("knobs", {})
    problems = list(contradictions(section))
    if not whole_machine:
        wrong = {key[-1] for key, _ in problems}
        for name in sysctls(section):
            if name not in wrong and not name.startswith(("net.", "net/")):
                where = (name,) if name in section else ("sysctls", name)
                problem = f"{name} is a setting of the whole machine; only those of net. belong to the SUT's namespace"
                problems.append((where, problem))
    if content["kind"] == VM and "rings" in section.get("ports", {}):
        problems.append((("ports", "rings"), "a guest's rings are made when it boots; write sut.ring"))
    for key, problem in problems:
        # A sysctl's name is in the problem, and has dots of its own.
        shown = [part for part in key if "." not in part and "/" not in part]
        yield _line(("sut", "knobs", *key), lines), _shown(("sut", "knobs", *shown)), problem


def _rack_contradictions(content: Mapping[str, Any], lines: Mapping[_Key, int]) -> Iterator[tuple[int, str, str]]:
    if content["kind"] != RACK:
        return
    for index, port in enumerate(content["sut"]["ports"]):
        key: _Key = ("sut", "ports", index)
        if len(named := [name for name in ("interface", "mac", "pci") if name in port]) != 1:
            problem = f"is named by {' and '.join(named) or 'nothing'}; name it by one of interface, mac and pci"
            yield _line(key, lines), _shown(key), problem
        if content["generator"]["kind"] == TREX and "faces" not in port:
            problem = "the key faces is missing; write the MAC address of TRex's port at the other end"
            yield _line(key, lines), _shown(key), problem
    host = content["sut"]["host"]
    for within, one in (((), host), (("jump",), host.get("jump", {}))):
        if "key" in one and "password_env" in one:
            full = ("sut", "host", *within, "password_env")
            yield _line(full, lines), _shown(full), "there is a key too; keep the key, or the password"


def _problems(error: jsonschema.ValidationError) -> Iterator[tuple[_Key, str]]:
    """What is wrong, with the key it concerns below the one the validator stopped at."""
    schema: Any = error.schema
    value: Any = error.instance
    expected: Any = error.validator_value
    remedy = f"; write {schema['description']}" if "description" in schema else ""
    match error.validator:
        case "additionalProperties":
            known, patterns = list(schema.get("properties", {})), list(schema.get("patternProperties", {}))
            for name in map(str, value):
                if name not in known and not any(re.search(pattern, name) for pattern in patterns):
                    choice = remedy.removeprefix("; ") if patterns else f"known are {', '.join(known)}"
                    yield (name,), f"{_UNKNOWN}; {_meant(name, known) or choice}"
        case "required":
            for name in expected:
                if name not in value:
                    near = difflib.get_close_matches(name, [str(other) for other in value if other not in expected], 1)
                    hint = f"is {near[0]} meant for it?" if near else "add it, see resources/testbeds/local-netns.yaml"
                    yield (), f"the key {name} is missing; {hint}"
        case "enum":
            choices = [str(choice) for choice in expected]
            yield (
                (),
                f"{_brief(value)} is not one of {', '.join(choices)}; {_meant(str(value), choices) or 'write one'}",
            )
        case "anyOf" | "pattern":
            yield (), f"{_brief(value)} does not fit{remedy}"
        case _:
            yield (), f"{error.message if len(error.message) < 120 else f'{_brief(value)} does not fit'}{remedy}"


def _meant(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def _line(key: _Key, lines: Mapping[_Key, int]) -> int:
    """The line of the key, or of the nearest one around it that is in the file."""
    while key not in lines and key:
        key = key[:-1]
    return lines.get(key, 1)


def _shown(key: _Key) -> str:
    return ".".join(str(part) for part in key) or "the file"


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}…"
