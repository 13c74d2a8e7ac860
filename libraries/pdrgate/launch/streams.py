"""Standard output and error while Robot runs: who reads them may leave, or want something else of them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class _UnreadIsLost(io.FileIO):
    """An output whose reader may leave (``| head``): what nobody reads any more is no fault of the run's."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            # From here on for programs that we start, too.
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
                os.dup2(nowhere.fileno(), self.fileno())
            return len(data)


@contextlib.contextmanager
def outlives_its_reader(name: str) -> Iterator[None]:
    """Let standard output or error, ours and Robot's, go on when its reader has left.

    Otherwise the first line after that would fail the keyword that writes it, and be part of the verdict. So would a
    name with a letter that the stream's encoding lacks: it is written as its code.
    """
    stream = getattr(sys, name)
    if stream is not getattr(sys, f"__{name}__") or not isinstance(stream, io.TextIOWrapper):
        yield  # somebody's own, or none at all
        return
    raw = io.BufferedWriter(_UnreadIsLost(stream.fileno(), "wb", closefd=False))
    own = io.TextIOWrapper(raw, encoding=stream.encoding, errors="backslashreplace", line_buffering=True)
    stream.flush()
    try:
        with _standing_for(name, own):
            yield
    finally:
        own.flush()


@contextlib.contextmanager
def told_to(stream: TextIO | None) -> Iterator[None]:
    """Let this stream be standard output for who tells how a run goes, Robot's library included; None: nobody hears."""
    with contextlib.ExitStack() as stack:
        heard = stream or stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
        stack.enter_context(_standing_for("stdout", heard))
        yield


@contextlib.contextmanager
def _standing_for(name: str, stream: TextIO) -> Iterator[None]:
    """Robot's library writes past what Robot captures: both names are its streams."""
    kept = getattr(sys, name), getattr(sys, f"__{name}__")
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)
    try:
        yield
    finally:
        setattr(sys, name, kept[0])
        setattr(sys, f"__{name}__", kept[1])
