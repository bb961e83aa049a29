"""The connector that a command names: a registered one by its name, or any by its configuration file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.control.target import (
    connectors_of,
    kafka_of,
    target_options,
    worker_configuration,
    worker_file_of,
)
from airflow_connect.cli.inputs import spec_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.reporting.redaction import secret_values

if TYPE_CHECKING:
    from airflow_connect.control.client.connectors import Connectors
    from airflow_connect.runtime.spec import RunSpec

_FILES = (".json", ".properties")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A connector.

    Attributes:
        name: its name.
        registered: where it is registered; None: nowhere, as the connectors of DAGs.
        spec: the input of its runs; None: only a REST API is known.
        options: see `target_options`.
    """

    name: str
    registered: Connectors | None
    spec: RunSpec | None = field(repr=False)
    options: str = ""

    def refuse_running(self) -> None:
        """Offsets of a registered connector can be changed only while it is stopped.

        Raises:
            ConfigError: it is not; says how to stop it.
        """
        if self.registered is None:
            return
        state = self.registered.states(self.name)["connector"]["state"]
        if state != "STOPPED":
            target = f"{self.name}{self.options}"
            raise ConfigError(
                f"Connector {self.name} is {state}. Its offsets can be changed only while it is STOPPED.",
                code="offset.not_stopped",
                suggestion=f"Stop it first: airflow-connect connectors stop {target}",
            )


def is_file(word: str) -> bool:
    """Whether a word names a configuration file, not a connector."""
    return word.endswith(_FILES) and (Path(word).exists() or "/" in word)


def choose(arguments: Namespace, terminal: Terminal, command: str) -> Chosen:
    """The connector of `arguments.name`.

    Raises:
        ConfigError: there is none, or a file cannot be used.
    """
    word, settings, options = arguments.name, getattr(arguments, "settings", []), target_options(arguments)
    if is_file(word):
        worker = worker_configuration(arguments, f"{command} of a configuration file")
        spec = spec_of(word, worker, command, settings)
        _hide(terminal, spec)
        registered = kafka_of(arguments, terminal, command)
        name = str(spec.connector.get("name") or "")
        return Chosen(name, registered if name in registered.names() else None, spec, options)
    if worker_file_of(arguments) is None:
        connectors = connectors_of(arguments, terminal)
        connectors.info(word)
        return Chosen(word, connectors, None, options)
    kafka = kafka_of(arguments, terminal, command)
    spec = _with(kafka.spec(word), settings)
    _hide(terminal, spec)
    return Chosen(word, kafka, spec, options)


def spec_that_runs(arguments: Namespace, terminal: Terminal, command: str) -> RunSpec:
    """The input of runs of the connector of `arguments.name`; needs the brokers.

    Raises:
        ConfigError: there is no such connector, or no worker configuration.
    """
    if is_file(arguments.name):
        read_connector_file(arguments.name)  # If it is missing, that is the first thing to say.
    worker_configuration(arguments, command)
    spec = choose(arguments, terminal, command).spec
    assert spec is not None
    return spec


def _with(spec: RunSpec, settings: list[tuple[str, str]]) -> RunSpec:
    from dataclasses import replace

    connector: Mapping[str, Any] = {**spec.connector, **dict(settings)}
    return replace(spec, connector=connector)


def _hide(terminal: Terminal, spec: RunSpec) -> None:
    terminal.hide(spec.references, secret_values(spec.connector, spec.worker))
