"""News to a chat, by its webhook: one JSON, made of a template, is posted."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdrgate.this_process.own_files import PACKAGE
from pdrgate.values.errors import TestbedError, UsageError

WEBHOOK_VARIABLE, TOKEN_VARIABLE = "PDRGATE_WEBHOOK", "PDRGATE_WEBHOOK_TOKEN"
"""The address, which mostly is a secret by itself; a token, for a server that wants one (Matrix)."""
CHATS = ("slack", "mattermost", "matrix", "teams")
"""Chats that a template of pdrgate's own is for."""
_PLACE = re.compile(r"\{(\w+)\}")
_LARGEST = 1 << 20
_PATIENCE = 30.0


def webhook_template(name: str) -> Any:
    """The template of a chat by its name, or that in a file. Raises UsageError."""
    file = PACKAGE / "resources/notices" / f"{name}.json" if name in CHATS else Path(name)
    try:
        with file.open("rb") as stream:
            return json.loads(stream.read(_LARGEST))
    except OSError as error:
        known = ", ".join(CHATS)
        raise UsageError(
            f"cannot read the template {name}: {error.strerror}; name a file, or one of {known}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the template {name} is no JSON: {error}; docs/ci.md has one") from error


def filled(template: Any, values: Mapping[str, str]) -> Any:
    """The template with ``{title}`` and the like replaced in each text. Raises UsageError for a name that is none."""
    match template:
        case dict():
            return {key: filled(one, values) for key, one in template.items()}
        case list():
            return [filled(one, values) for one in template]
        case str():
            unknown = [name for name in _PLACE.findall(template) if name not in values]
            if unknown:
                raise UsageError(f"the template has {{{unknown[0]}}}; there are {', '.join(sorted(values))}")
            return _PLACE.sub(lambda found: _harmless(values[found[1]]), template)
    return template


def post(url: str, token: str, content: Any) -> None:
    """Post a JSON. ``{id}`` in the address becomes a name of this message, by PUT, as Matrix wants it.

    Raises:
        TestbedError: the server did not take it. The address is not in the message.
    """
    body = json.dumps(content).encode()
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"{WEBHOOK_VARIABLE} is no address of the web; it begins with https://")
    name = hashlib.sha256(body).hexdigest()[:32]
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    method = "PUT" if "{id}" in url else "POST"
    try:
        request = urllib.request.Request(url.replace("{id}", name), body, headers, method=method)
        with urllib.request.urlopen(request, timeout=_PATIENCE):
            return
    except (OSError, ValueError) as error:
        why = f"HTTP status {error.code}" if isinstance(error, urllib.error.HTTPError) else type(error).__name__
        raise TestbedError(
            f"the webhook did not take the news ({why}); it is reported again by the next run, see {WEBHOOK_VARIABLE}"
        ) from None


def _harmless(text: str) -> str:
    """A text that calls nobody: in chats a build's name could be ``<!channel>`` or ``@all``."""
    return re.sub(r"@(?=\w)", "@\u200b", text.replace("<", "\u2039").replace(">", "\u203a"))
