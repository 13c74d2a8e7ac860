"""Floor 6: starts Robot on the gate's suites, which is what ``pdrgate gate`` does."""

from pdrgate.launch.folders import give_file_to_caller, give_to_caller, new_folder, refuse_linked
from pdrgate.launch.running import Telling, run_gate
from pdrgate.launch.suites import check, default_testbed, found, listed

__all__ = [
    "Telling", "check", "default_testbed", "found", "give_file_to_caller", "give_to_caller", "listed", "new_folder",
    "refuse_linked", "run_gate",
]  # fmt: skip
