"""What a host answers, of which nothing is sure: its kernel and programs may be a stranger's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pdrgate.hosts.host import HostError
from pdrgate.values.errors import PdrGateError


class GarbledError(HostError):
    """A host answered what makes no sense."""


@contextlib.contextmanager
def understood(host: str) -> Iterator[None]:
    """Have what cannot be made sense of within be the fault of the host that answered so.

    For what asks a host and takes its answers apart, and for nothing else: a fault of ours there is told as the host's.

    Raises:
        GarbledError: an answer lacks what every one has, or is of another kind.
    """
    try:
        yield
    except PdrGateError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise GarbledError(
            f"{host} answered what makes no sense ({type(error).__name__}: {str(error)[:200]}); does its kernel, or a "
            "program there, tell what it should?"
        ) from error
