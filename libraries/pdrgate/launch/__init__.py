"""Floor 6: starts Robot on the gate's suites, which is what ``pdrgate gate`` does."""

from pdrgate.launch.folders import give_file_to_caller, give_to_caller, new_folder
from pdrgate.launch.running import run_gate
from pdrgate.launch.suites import check, default_testbed, found, variables

__all__ = [
    "check", "default_testbed", "found", "give_file_to_caller", "give_to_caller", "new_folder", "run_gate", "variables",
]  # fmt: skip
