"""The fingerprint: what must be equal for two results to be comparable."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.telemetry.environment import Environment


def fingerprint(
    scenario: str,
    profile: str,
    testbed: str,
    testbed_facts: Mapping[str, str],
    generator: Mapping[str, str],
    environment: Environment,
) -> dict[str, str]:
    """All entries as text; what the host does not tell is ``unknown``, and equal to another unknown."""
    return {
        "scenario": scenario,
        "profile": profile,
        "testbed": testbed,
        **{f"testbed_{key}": value for key, value in testbed_facts.items()},
        "generator": f"{generator['name']}/{generator['engine']}",
        "kernel": environment.kernel_release or "unknown",
        "kernel_version": environment.kernel_version or "unknown",
        "config": environment.config_sha256 or "unknown",
        "cpu_model": environment.cpu_model or "unknown",
        "cpus": str(environment.cpus or "unknown"),
    }
