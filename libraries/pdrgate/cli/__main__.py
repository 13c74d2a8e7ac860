"""``python -m pdrgate.cli``."""

import sys

from pdrgate.cli import main

sys.exit(main())
