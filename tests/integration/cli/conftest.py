"""Commands about registered connectors, over REST and straight over Kafka."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.command_line import Done, run_command
from tests.support.servers.rest import STRINGS, RestServer, worker_of

SECRET = "hunter2-of-the-test"
Command = Callable[..., Done]


@pytest.fixture(scope="module")
def installation(kafka: KafkaBroker) -> dict[str, str]:
    """A worker configuration with state topics of its own."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    return {**worker_of(kafka.bootstrap, name), "key.converter": STRINGS, "value.converter": STRINGS}


@pytest.fixture(scope="module")
def server(installation: dict[str, str]) -> Iterator[RestServer]:
    """Its REST API."""
    with RestServer(installation) as server:
        yield server


@pytest.fixture(scope="module")
def worker_file(installation: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The worker configuration as a file."""
    file = tmp_path_factory.mktemp("worker") / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in installation.items()))
    return file


@pytest.fixture
def over_rest(server: RestServer) -> Command:
    """Run a command against the REST API."""
    url = "http://{}:{}".format(*server.address)
    return lambda *words: run_command(*words, "--url", url)


@pytest.fixture
def over_kafka(worker_file: Path) -> Command:
    """Run a command straight over Kafka."""
    return lambda *words: run_command(*words, "--worker", worker_file)


@pytest.fixture(params=["over_rest", "over_kafka"])
def command(request: pytest.FixtureRequest) -> Command:
    """Both, one after the other: they must not differ."""
    found: Command = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def connector_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a connector file: `connector_file("orders", topics="t")`, `_` in a key standing for `.`."""

    def write(name: str, **config: Any) -> Path:
        path = tmp_path / f"{name}.json"
        given: Mapping[str, Any] = {key.replace("_", "."): value for key, value in config.items()}
        path.write_text(json.dumps({"name": name, **given}))
        return path

    return write
