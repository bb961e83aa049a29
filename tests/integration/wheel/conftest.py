"""The wheel, built from this checkout and installed into environments of its own, as a user does with pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.jvm.java import java_home

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements.lock"
LOCAL_SINK = {
    "name": "lines-to-files",
    "connector.class": "LocalSink",
    "tasks.max": "1",
    "format.class": "io.confluent.connect.hdfs.string.StringFormat",
    "flush.size": "10",
}
# What a developer's shell or another Airflow has set must not help, or disturb, the program of the wheel.
NOT_INHERITED = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYSPARK_PYTHON", "SPARK_HOME")


@dataclass(frozen=True)
class Installation:
    """An environment with the wheel and some of its extras.

    Attributes:
        bin: folder with `python` and `airflow-connect`.
        folder: where its programs run: outside the checkout.
    """

    bin: Path
    folder: Path

    def run(self, *command: Any, **environment: str | None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; a variable that is None is removed."""
        own = {"JAVA_HOME": java_home(), "AIRFLOW_HOME": str(self.folder / "airflow")}
        # With a configuration folder Spark's JVM keeps no archive of its classes, which would take longer to write than
        # the run, and 150 MB of the cache for jars that are gone after the test.
        own["SPARK_CONF_DIR"] = str(self.folder)
        merged = {**os.environ, **own, **environment}
        kept = {key: value for key, value in merged.items() if value is not None and key not in NOT_INHERITED}
        argv = [str(self.bin / command[0]), *map(str, command[1:])]
        return subprocess.run(argv, capture_output=True, text=True, cwd=self.folder, env=kept, check=False)

    def connector(self, config: Mapping[str, str], **worker: str) -> tuple[Path, Path]:
        """Write a worker file and a connector file; returns both paths."""
        paths = self.folder / "worker.json", self.folder / f"{config['name']}.json"
        converter = "org.apache.kafka.connect.storage.StringConverter"
        base = {
            "key.converter": converter,
            "value.converter": converter,
            "offset.storage.file.filename": str(self.folder / "offsets"),
            **{key.replace("_", "."): value for key, value in worker.items()},
        }
        for path, settings in zip(paths, (base, config), strict=True):
            path.write_text(json.dumps(settings))
        return paths


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Installation]:
    """`install("airflow,spark")`: the wheel with these extras in an empty environment, in the locked versions."""
    made: dict[str, Installation] = {}

    def make(extras: str) -> Installation:
        if extras not in made:
            folder = tmp_path_factory.mktemp("installed")
            target = folder / "venv"
            _uv("venv", "--quiet", "--python", sys.executable, str(target))
            wanted = f"airflow-connect[{extras}] @ {wheel.as_uri()}" if extras else str(wheel)
            install = ("pip", "install", "--quiet", "--python", str(target / "bin" / "python"), "-c", str(LOCK), wanted)
            # The locked versions are in uv's cache once they were installed; only the first time needs the network.
            if _uv(*install, "--offline", check=False).returncode:
                _uv(*install)
            _link_bytecode(target)
            made[extras] = Installation(target / "bin", tmp_path_factory.mktemp("work"))
        return made[extras]

    return make


@pytest.fixture(scope="session")
def resolve(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """`resolve("airflow,spark", ["apache-airflow>=3"], "-c", lock)`: what uv would install, name to version."""

    def pins(extras: str, others: list[str], *options: str) -> dict[str, str]:
        wanted = tmp_path_factory.mktemp("resolved") / "wanted.in"
        wanted.write_text("\n".join([f"airflow-connect{f'[{extras}]' if extras else ''} @ {wheel.as_uri()}", *others]))
        command = ("pip", "compile", "--quiet", "--no-header", "--no-annotate", *options, str(wanted))
        found = _uv(*command).stdout.splitlines()
        pairs = (line.partition("==") for line in found if "==" in line)
        return {name: version.partition(" ")[0] for name, _, version in pairs}

    return pins


def _link_bytecode(environment: Path) -> None:
    """Give an environment the bytecode of this one, which would take a minute to compile.

    uv links the same source files into both, and Python takes no bytecode of another version of a file.
    """
    ours = Path(sysconfig.get_path("purelib"))
    theirs = environment / ours.relative_to(sys.prefix)
    for folder, _, files in os.walk(theirs):
        compiled = ours / Path(folder).relative_to(theirs) / "__pycache__"
        if compiled.is_dir() and any(name.endswith(".py") for name in files):
            shutil.copytree(compiled, Path(folder, "__pycache__"), copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    if not os.path.exists(target):  # a few wheels bring bytecode
        os.symlink(source, target)


def _uv(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    settings = {"UV_DEFAULT_INDEX": index} if index and "UV_DEFAULT_INDEX" not in os.environ else {}
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        check=False,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.fixture
def lines(kafka: KafkaBroker, make_topic: Callable[..., str], produce: Any) -> str:
    """A topic with the 20 values `line-0` to `line-19`."""
    topic = make_topic()
    produce(topic, [(0, None, b"line-%d" % number, 1_790_000_000_000, []) for number in range(20)])
    return topic
