"""Standard output and error of a command. Their reader may leave early, or they may be redirected."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, TextIO


class _UnreadIsLost(io.FileIO):
    """An output whose reader may leave (``| head``). Unread output is no fault of the command."""

    why_lost = ""
    """Why it could not be written, where nobody has left."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.why_lost = error.strerror or str(error)
            # From here on for programs that we start, too.
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
                os.dup2(nowhere.fileno(), self.fileno())
            return len(data)


@contextlib.contextmanager
def outlives_its_reader(name: Literal["stdout", "stderr"]) -> Iterator[Callable[[], str]]:
    """Let standard output or error, ours and Robot's, go on when its reader has left or never was there.

    Otherwise the first line after that would end the command, or fail the keyword that writes it, and be part of the
    verdict. So would a full disk, and a name with a letter that the stream's encoding lacks: it is written as its code.

    Yields:
        A function that returns why something could not be written; empty if all was, or if nobody has read it.
    """
    stream = getattr(sys, name)
    with contextlib.ExitStack() as stack:
        if stream is None:  # closed by who started us: its number would be that of the next file that is opened
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
            stack.enter_context(_standing_for(name, nowhere))
            yield str
            return
        if stream is not getattr(sys, f"__{name}__") or not isinstance(stream, io.TextIOWrapper):
            yield str  # somebody's own
            return
        raw = _UnreadIsLost(stream.fileno(), "wb", closefd=False)
        own = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding=stream.encoding, errors="backslashreplace", line_buffering=True
        )
        stream.flush()
        stack.callback(own.flush)
        stack.enter_context(_standing_for(name, own))

        def lost() -> str:
            own.flush()
            return raw.why_lost

        yield lost


@contextlib.contextmanager
def standard_output_to(stream: TextIO | None) -> Iterator[None]:
    """Let ``stream`` be the standard output of all progress messages, Robot's library included; None discards them."""
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
