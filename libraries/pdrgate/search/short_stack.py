"""Imports MLRsearch for `pdrgate.search.mlr`, which imports this before it.

Its classes look for names in their callers by `inspect.stack`, ten times, and that reads the sources of all callers:
within Robot of dozens, in a thread of its own of few.
"""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(1) as pool:
    pool.submit(importlib.import_module, "MLRsearch").result()
