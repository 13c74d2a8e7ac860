"""``python -m pdrgate.cli``."""

import sys

from pdrgate.cli import main

if __name__ == "__main__":
    sys.exit(main())
