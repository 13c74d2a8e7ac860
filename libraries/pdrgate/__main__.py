"""How the command begins: what it imports takes a second and more, and signals are answered meanwhile, too."""

import signal
import sys

from pdrgate.this_process.interruption import SIGNALS, Interruption, interruptible


def begin() -> int:
    """Run the command line and return its exit code."""
    try:
        with interruptible():
            from pdrgate.cli import main

            return main()
    except Interruption as interruption:
        sys.stderr.write(f"pdrgate: {interruption}\n")
        return interruption.exit_code
    finally:
        # Everything is printed and put back by now. A second Ctrl-C would only make Python print a traceback.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(begin())
