"""Conformance on the broker of the session; the example plugins as an installed distribution."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.api.config import plugins
from airflow_connect.devstack.kafka import KafkaBroker

EXAMPLES = Path(__file__).parents[3] / "examples" / "plugins"


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    """What airflow_connect.testing.fixtures would start a broker of its own for."""
    return kafka.bootstrap


@pytest.fixture(scope="session")
def installed_examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the example distribution installed in it, on the path of this process."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--offline",
            "--python", sys.executable, "--target", str(folder), str(EXAMPLES),
        ],
        check=True,
    )  # fmt: skip
    sys.path.insert(0, str(folder))
    plugins._registered.cache_clear()
    yield folder
    sys.path.remove(str(folder))
    plugins._registered.cache_clear()
    for name in [name for name in sys.modules if name.startswith("airflow_connect_examples")]:
        del sys.modules[name]
