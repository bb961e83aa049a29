"""Commands run in this process, with a scripted driver and streams that are kept."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.cli.main import build_parser, execute
from airflow_connect.cli.terminal import Terminal
from tests.support.command_line import Done
from tests.support.processes.drivers import FAKE_FOLDER

DRIVER = "airflow_connect.runtime.driver.entry"


class FakeTerminalStream(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """`cli("plan", worker, connector, tty=False)` with the driver of tests/support/fake_driver."""
    spec = importlib.util.spec_from_file_location(DRIVER, FAKE_FOLDER / "fake_run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, DRIVER, module)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(*argv: str | Path, tty: bool = False) -> Done:
        arguments = build_parser().parse_args([str(word) for word in argv])
        out, err = (FakeTerminalStream(), FakeTerminalStream()) if tty else (io.StringIO(), io.StringIO())
        terminal = Terminal(out, err, as_json=arguments.json, verbose=arguments.verbose)
        return Done(execute(arguments, terminal), out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    path = tmp_path / "worker.properties"
    path.write_text("bootstrap.servers=broker:9092\n")
    return path


@pytest.fixture
def connector(tmp_path: Path) -> Callable[..., Path]:
    """Write a connector file: `connector("orders", fake="copy")`."""

    def write(name: str, **config: Any) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"name": name, "connector.class": "Fake", **config}))
        return path

    return write
