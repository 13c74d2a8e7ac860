"""``python -m pdrgate.traffic.trex.worker``, or ``PYTHON FOLDER``, where PYTHON need not have pdrgate installed."""

import importlib
import importlib.util
import pathlib
import sys
import types

_NAME = "pdrgate_trex_worker"


def _load() -> types.ModuleType:
    """The package in this folder, under a name that needs no pdrgate above it."""
    folder = pathlib.Path(__file__).resolve().parent
    if sys.path and pathlib.Path(sys.path[0]).resolve() == folder:
        del sys.path[0]  # the client is not to find our modules as its own
    spec = importlib.util.spec_from_file_location(
        _NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = package
    spec.loader.exec_module(package)
    return importlib.import_module(_NAME + ".conversation")


if __name__ == "__main__":
    _load().main()
