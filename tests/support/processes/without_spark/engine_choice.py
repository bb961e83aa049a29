"""Drivers that start no Spark, and have their tasks in their own process; all else of the run is the real one.

They are those with the environment variable VARIABLE, and those whose worker configuration has `spark.app.name` NAME.
For tests of what comes before and after the copy: starting Spark takes four seconds of CPU time, ten times the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ENGINE = "airflow_connect.runtime.engine.spark"
NAME = "without-spark"
VARIABLE = "AIRFLOW_CONNECT_TESTS_WITHOUT_SPARK"


def install() -> None:
    """Let this process choose whenever it loads the engine."""
    sys.meta_path.insert(0, _EngineFinder())


class _EngineFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != ENGINE:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and found.loader is not None:
            found.loader = _ChoosingLoader(found.loader)
        return found


class _ChoosingLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        spark_engine = module.SparkEngine

        def choose(settings: Mapping[str, str]) -> Any:
            from airflow_connect.runtime.engine.in_process import InProcessEngine

            class WithoutSpark(InProcessEngine):
                def __enter__(self) -> InProcessEngine:
                    return self

                def __exit__(self, *_: object) -> None:
                    """There is no session to end."""

            is_without = os.environ.get(VARIABLE) or settings.get("spark.app.name") == NAME
            return WithoutSpark() if is_without else spark_engine(settings)

        module.SparkEngine = choose
