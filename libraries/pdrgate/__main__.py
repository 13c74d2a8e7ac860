"""How the command begins: what it imports takes a second and more, and Ctrl-C is answered meanwhile, too."""

import sys


def begin() -> int:
    """Run the command line and return its exit code."""
    try:
        from pdrgate.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("pdrgate: interrupted\n")
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(begin())
