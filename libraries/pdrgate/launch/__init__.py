"""Floor 6: starts Robot on the gate's suites, which is what ``pdrgate gate`` does."""

from pdrgate.history.results import followed
from pdrgate.launch.folders import give_history_to_caller, give_to_caller, new_folder
from pdrgate.launch.resuming import resumed_options
from pdrgate.launch.running import OutputForm, run_gate
from pdrgate.launch.suites import check, default_testbed, listed
from pdrgate.this_process.own_files import found

__all__ = [
    "OutputForm", "check", "default_testbed", "followed", "found", "give_history_to_caller", "give_to_caller", "listed",
    "new_folder", "resumed_options", "run_gate",
]  # fmt: skip
