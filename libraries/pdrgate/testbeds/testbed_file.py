"""Testbed files: which generator and which SUT a run has. An error in one names its file, line and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdrgate.testbeds.config import TREX, GeneratorConfig, TestbedConfig, named_file
from pdrgate.testbeds.file_faults import faults
from pdrgate.testbeds.kinds import KINDS
from pdrgate.testbeds.yaml_lines import parse
from pdrgate.this_process.checkout import own_testbed_file
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import TestbedError

_LARGEST = 16 << 20
"""Bytes of a testbed file."""


def load_testbed(path: Path | str) -> TestbedConfig:
    """Read a testbed file.

    Raises:
        TestbedError: the file cannot be read, is no YAML, or does not follow the schema. The message has the first
            fault, with line and key, and the number of the others.
    """
    source = Path(path)
    try:
        with source.open("rb") as file:
            raw = file.read(_LARGEST + 1)  # a device has no end
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise TestbedError(
            f"{source}: cannot read it: {error.strerror}; name a testbed file such as {own_testbed_file('local-netns')}"
        ) from error
    except UnicodeDecodeError as error:
        raise TestbedError(f"{source}: is no UTF-8 text; name a testbed file in YAML") from error
    if len(raw) > _LARGEST:
        raise TestbedError(f"{source}: is larger than {_LARGEST >> 20} MiB; name a testbed file in YAML")
    try:
        content, lines = parse(source, text)
        _knobs_by_text(content)
        wrong = faults(content, lines)
    except RecursionError:
        raise TestbedError(
            f"{source}: is nested too deeply for a testbed; start from {own_testbed_file('local-netns')}"
        ) from None
    if wrong:
        line, key, problem = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise TestbedError(f"{source}:{line}: {key}: {problem}{more}")
    return _made(source, _whole(content))


def _made(source: Path, content: Mapping[str, Any]) -> TestbedConfig:
    """The testbed of a content without faults: the schema has the types and ranges, the kinds have the defaults."""
    sut = content.get("sut", {})
    cpus = sut.get("cpus", "auto")
    shared = {
        "name": content["name"],
        "source": source,
        "generator": _generator(source, content["generator"]),
        "cpus": None if cpus == "auto" else tuple(sorted(int(cpu) for cpu in cpus)),
        "run": content.get("run", {}),
        **{key: sut[key] for key in ("isolate", "knobs") if key in sut},
    }
    kind = KINDS[content["kind"]]
    return kind(**shared, **kind.own_keys(source, content))


def _whole(value: Any) -> Any:
    """The value with 2 for 2.0, which the schema lets through for an integer."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


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


def _trex(source: Path, generator: Mapping[str, Any]) -> TRexConfig:
    made = {key: generator[key] for key in TRexConfig.__dataclass_fields__ if key in generator}
    made |= {key: named_file(source, generator[key]) for key in ("client", "interpreter") if key in generator}
    made["pcap"] = tuple(named_file(source, name) for name in generator.get("pcap", ()))
    return TRexConfig(**made | {"ports": tuple(generator.get("ports", (0, 1)))})


def _knobs_by_text(content: Mapping[str, Any]) -> None:
    """Give the section of knobs text for its keys, which are matched by patterns; YAML reads some as numbers."""
    if isinstance(content.get("sut"), dict) and "knobs" in content["sut"]:
        content["sut"]["knobs"] = _text_keys(content["sut"]["knobs"])


def _text_keys(value: Any, depth: int = 4) -> Any:
    if depth and isinstance(value, dict):
        return {str(key): _text_keys(one, depth - 1) for key, one in value.items()}
    return value
