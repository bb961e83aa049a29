"""Python runs this at its start when the folder is on PYTHONPATH: the driver gets the run of `fake_run`."""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

_FAKES = {"airflow_connect.runtime.driver.entry": "fake_run.py"}


class _FakeFinder(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname not in _FAKES:
            return None
        return spec_from_file_location(fullname, Path(__file__).with_name(_FAKES[fullname]))


sys.meta_path.insert(0, _FakeFinder())
