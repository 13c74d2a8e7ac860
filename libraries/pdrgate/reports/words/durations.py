"""Times that people wait, in words."""

from __future__ import annotations


def about(seconds: float) -> str:
    """``about 40 min``, ``about 2 h 10 min``, ``less than a minute``."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    hours, left = divmod(minutes if minutes < 60 else 5 * round(minutes / 5), 60)
    return "about " + " ".join([*([f"{hours} h"] if hours else []), *([f"{left} min"] if left else [])])


def time_left(took: float, done: int, of: int) -> str:
    """``about 12 min left``: the rest of several things, by how long those took that are done; empty at the end.

    Args:
        took: seconds for those that are done.
    """
    return f"{about(took / done * (of - done))} left" if 0 < done < of else ""
