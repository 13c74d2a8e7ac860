"""Answers of a host, which are untrusted: its kernel and programs may be a stranger's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pdrgate.hosts.host import HostError
from pdrgate.values.errors import PdrGateError


class GarbledError(HostError):
    """A host answered what makes no sense."""


@contextlib.contextmanager
def understood(host: str) -> Iterator[None]:
    """Attribute parse errors within the context to the host that answered.

    Use it only around code that asks a host and parses its answers: a fault of ours there is reported as the host's.

    Raises:
        GarbledError: an answer lacks a field, or has a value of another kind.
    """
    try:
        yield
    except PdrGateError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise GarbledError(
            f"{host} answered what makes no sense ({type(error).__name__}: {str(error)[:200]}); does its kernel, or a "
            "program there, answer as it should?"
        ) from error
