"""Decompressing what a stranger packed, piece by piece: a few kilobytes may be made to unpack to gigabytes."""

from __future__ import annotations

import bz2
import contextlib
import lzma
import shutil
import subprocess
import threading
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import BinaryIO, Protocol

from pdrgate.builds.handed_over import CHUNK
from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import ToolError

_MEMORY = 256 << 20
"""Bytes that unpacking may take: kernels are packed with dictionaries of up to 128 MiB."""


class MissingToolError(ToolError):
    """The program that unpacks such a file is not installed."""


class Source(Protocol):
    """Source that can be read once, from its beginning to its end."""

    def read(self, size: int = ..., /) -> bytes: ...


class Decompressor(Protocol):
    """Common part of `lzma.LZMADecompressor` and its like."""

    @property
    def needs_input(self) -> bool: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """Decompressor by zlib with the interface of the others."""

    def __init__(self) -> None:
        self._one = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._left = b""

    @property
    def needs_input(self) -> bool:
        return not self._left and not self.eof

    @property
    def eof(self) -> bool:
        return self._one.eof

    @property
    def unused_data(self) -> bytes:
        return self._one.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        made = self._one.decompress(self._left + data, max_length)
        self._left = self._one.unconsumed_tail
        return made


def _lzma() -> Decompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_AUTO, memlimit=_MEMORY)


_HERE: Mapping[bytes, Callable[[], Decompressor]] = {
    b"\x1f\x8b": _Gzip, b"\xfd7zXZ\0": _lzma, b"\x5d\0\0": _lzma, b"BZh": bz2.BZ2Decompressor,
}  # fmt: skip
_ZSTD, _LZ4 = ("zstd", "-dcq", f"--memory={_MEMORY}"), ("lz4", "-dcq")
_BY_PROGRAM: Mapping[bytes, Sequence[str]] = {
    b"\x28\xb5\x2f\xfd": _ZSTD, b"\x02\x21\x4c\x18": _LZ4, b"\x04\x22\x4d\x18": _LZ4,
}  # fmt: skip
"""The program that unpacks a file, by what the file begins with."""


_BEST = 32
"""Largest ratio at which a kernel, module or package packs, small ones aside."""


def most_unpacked(packed: int, small: int = 64 << 20) -> int:
    """Bytes that any file may unpack to. A file that unpacks to more was made to fill this machine."""
    return max(small, _BEST * packed)


def is_packed(head: bytes) -> bool:
    """Whether a file that begins so is compressed in a way that is known here."""
    return any(head.startswith(magic) for magic in (*_HERE, *_BY_PROGRAM))


def decompressed(packed: Source, most: int) -> Generator[bytes, None, None]:
    """Unpacked content of a file, or the file itself if it is not compressed, in pieces of 1 MiB at most.

    Raises:
        ValueError: it is damaged, ends too early, or unpacks to more than ``most`` bytes or with too much memory.
        MissingToolError: zstd or lz4 is not installed.
    """
    head = read_all(packed, 8)
    total = 0
    with contextlib.closing(_pieces(head, _Rejoined(head, packed))) as made:
        for piece in made:
            total += len(piece)
            if total > most:
                raise ValueError(f"it unpacks to more than {most >> 20} MiB")
            yield piece


class Unpacked:
    """Unpacked content of a file, to be read once. Raises as `decompressed` does."""

    def __init__(self, packed: Source, most: int) -> None:
        self._pieces = decompressed(packed, most)
        self._piece = memoryview(b"")

    def read(self, size: int = CHUNK, /) -> bytes:
        """The next bytes, at most ``size``; empty at its end."""
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._piece = memoryview(piece)
        taken, self._piece = self._piece[:size], self._piece[size:]
        return bytes(taken)

    def close(self) -> None:
        """End what unpacks it."""
        self._pieces.close()


class Part:
    """A stretch of a file, to be read once."""

    def __init__(self, file: Source, length: int) -> None:
        self._file = file
        self.left = length

    def read(self, size: int = CHUNK, /) -> bytes:
        """The next bytes, at most ``size``; empty at its end."""
        chunk = self._file.read(min(size, self.left))
        self.left -= len(chunk)
        return chunk


class _Rejoined:
    """A file whose beginning was read already."""

    def __init__(self, head: bytes, file: Source) -> None:
        self._head = head
        self._file = file

    def read(self, size: int = CHUNK, /) -> bytes:
        head, self._head = self._head[:size], self._head[size:]
        return head or self._file.read(size)


def read_all(file: Source, size: int) -> bytes:
    """The next bytes of a file, fewer only where it ends."""
    content = b""
    while len(content) < size and (chunk := file.read(size - len(content))):
        content += chunk
    return content


def _pieces(head: bytes, packed: Source) -> Generator[bytes, None, None]:
    for magic, make in _HERE.items():
        if head.startswith(magic):
            yield from _unpacked_here(packed, magic, make)
            return
    for magic, command in _BY_PROGRAM.items():
        if head.startswith(magic):
            yield from _unpacked_by(packed, command)
            return
    while chunk := packed.read(CHUNK):
        yield chunk


def _unpacked_here(packed: Source, magic: bytes, make: Callable[[], Decompressor]) -> Generator[bytes, None, None]:
    one = make()
    try:
        data = packed.read(CHUNK)
        while True:
            if made := one.decompress(data, CHUNK):
                yield made
            data = b""
            if one.eof:
                data = one.unused_data or packed.read(CHUNK)
                if not data.startswith(magic):
                    return  # what follows is no part of it
                one = make()
            elif one.needs_input and not (data := packed.read(CHUNK)):
                raise ValueError("it ends too early")
    except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"it is damaged: {error}") from error


def _unpacked_by(packed: Source, command: Sequence[str]) -> Generator[bytes, None, None]:
    if shutil.which(command[0]) is None:
        raise MissingToolError(f"unpacking it takes {command[0]}, which is not installed: apt-get install {command[0]}")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environment()
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        feeder = threading.Thread(target=_feed, args=(packed, program.stdin), daemon=True)
        feeder.start()
        try:
            while made := program.stdout.read(CHUNK):
                yield made
        except BaseException:
            program.kill()
            raise
        finally:
            program.stdout.close()
            feeder.join()
        if program.wait():
            raise ValueError(f"it is damaged, says {command[0]}")


def _feed(packed: Source, pipe: BinaryIO) -> None:
    with contextlib.suppress(OSError), contextlib.closing(pipe):
        while chunk := packed.read(CHUNK):
            pipe.write(chunk)
