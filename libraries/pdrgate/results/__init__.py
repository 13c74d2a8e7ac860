"""Floor 1: the typed result of a run, and the words that it ends with. No I/O, no packet."""
