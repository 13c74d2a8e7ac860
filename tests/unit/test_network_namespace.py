"""A thread that should live in a network namespace which is gone by then: an error, and nothing printed."""

from __future__ import annotations

import pytest

from pdrgate.hosts.network_namespace import ThreadInNamespace


def test_a_namespace_that_is_gone_is_an_error_and_prints_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    thread = ThreadInNamespace("pdrgate-000000-nowhere")
    done = []
    try:
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                thread.submit(lambda: done.append("in the namespace of the host")).result()
    finally:
        thread.close()
        thread.close()
    assert not done
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
