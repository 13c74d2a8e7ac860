"""Ctrl-C reaches what the tests start, also where they were started in the background of a shell that ignores it."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
