"""Prints the first dropped packets of an events file of Retis, one JSON object a line; a program of its own.

    python reader.py FILE MOST

Licence: what it imports is GPL-2.0, and so it shares no process with pdrgate.
"""

import json
import sys

from retis import EventFile


def main(path: str, most: int) -> None:
    for event in EventFile(path).events():
        if not most:
            break
        if event.skb_drop is None or event.kernel is None:
            continue
        # By names and not by attributes, which are not the same in all versions.
        found = event.to_dict()
        line = {
            "reason": found["skb-drop"].get("drop_reason", ""),
            "stack": found["kernel"].get("stack_trace") or [],
            "netns": (found.get("netns") or {}).get("inum"),
            "packet": " ".join(str(event.packet).split()) if event.packet is not None else "",
            "device": (found.get("dev") or {}).get("name", ""),
        }
        sys.stdout.write(json.dumps(line) + "\n")
        most -= 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
