"""What transfers tell of windows that are not fixed: the best of them, for a machine only makes windows smaller."""

from __future__ import annotations

import pytest
from flat_values import flat_transfer

from pdrgate.measurands import TransferSetting, of_transfers
from pdrgate.measurands.transfers.tcp_growth import AdvertisedWindow, FullWindowTime, GrowthBytes, UsedWindow
from pdrgate.record.phase import Phase
from pdrgate.record.transfer import Look
from pdrgate.record.trial import Trial


def transfer(*windows: int) -> Trial:
    """One whose receiver advertises these windows, KiB, looked at ten times a second; its sender uses half of each."""
    looks = tuple(
        Look(
            end=0.1 * (at + 1), seconds=0.1, sent=window * 1024, retransmitted=0, rtt=0.05, rtt_deviation=0.0,
            congestion_window=window * 1024, advertised=window * 1024,
        )
        for at, window in enumerate(windows)
    )  # fmt: skip
    return flat_transfer(
        131072, 1, "cubic", 1.0, delivered=1, seconds=1.0, sent=1, segment=1448, looks=looks, phase=Phase.REPEAT
    )


def test_the_best_transfer_tells() -> None:
    made = [transfer(64, 128, 1000, 1024), transfer(64, 960, 1000, 1000), transfer(64, 64, 64, 70)]
    assert AdvertisedWindow().value(made) == 1024
    assert FullWindowTime().value(made) == 0.2
    assert UsedWindow().value(made) == 490
    assert FullWindowTime().value(made[2:]) == 0.1
    for kind in (AdvertisedWindow, FullWindowTime, GrowthBytes, UsedWindow):
        assert kind().value([]) is None


def test_bytes_to_a_grown_window_do_not_depend_on_how_fast_they_came() -> None:
    fast, slow = transfer(64, 512, 1024), transfer(64, 64, 128, 128, 256, 1024)
    # A quarter is 256 KiB: two thirds of the first one's way from 64 to 512, of which each doubling sends as much more.
    assert GrowthBytes().value([fast]) == pytest.approx(64 * 9 ** (2 / 3))
    assert GrowthBytes().value([slow]) == 64 + 64 + 128 + 128 + 256
    assert GrowthBytes().value([transfer(256, 1024)]) == 256
    assert GrowthBytes().value([fast, transfer(64, 70)]) == GrowthBytes().value([fast])


def test_fixed_windows_do_not_grow_and_those_of_sockets_are_full_at_once() -> None:
    def names(buffers: str) -> set[str]:
        return {one.name for one in of_transfers(TransferSetting(65536, 1.0, 2, buffers))}  # type: ignore[arg-type]

    assert names("socket") - names("fixed") == {AdvertisedWindow.name, UsedWindow.name}
    assert names("kernel") - names("socket") == {FullWindowTime.name, GrowthBytes.name}
