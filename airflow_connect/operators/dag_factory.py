"""A folder of connector files as DAGs: one DAG for each file, with its schedule beside it.

    connectors/orders.json        the configuration, as for Kafka Connect; or orders.properties
    connectors/orders.dag.json    {"schedule": "@hourly", "tags": ["sales"]}; may be missing

Parsing reads these files, each once, and nothing else: no broker, no connection, no plugin.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, get_parsing_context

from airflow_connect.airflow.lineage.default_assets import default_assets
from airflow_connect.airflow.run_params import run_params
from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.errors import ConfigError
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.runtime.config_files import read_connector_file, read_worker_file

SIDECAR = ".dag.json"
ENDINGS = (".json", ".properties")
COPY = "copy"
_NOT_IN_DAG_ID = re.compile(r"[^\w.-]")
_SOURCE = re.compile(r"(?:Source|MirrorCheckpoint|MirrorHeartbeat)(?:Connector)?$")
"""Names of classes that read no topics, or no records of them, that a time could limit; no class is imported here."""
_LONGEST_NAME = 200
"""Of a file in a dag id, which may have 250 characters."""
_LONGEST_S = 10 * 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class DagSettings:
    """What the DAG of a connector needs besides the connector's configuration.

    Attributes:
        schedule: a cron expression, a preset such as `@hourly`, or None: started by hand.
        dag_id: None: the name of the connector, with `_` for characters that Airflow does not allow.
        description: for the list of DAGs; None: the connector's class and topics.
        start_date: ISO 8601; None: the beginning of 2026. Runs before now are never caught up.
        tags: besides `connector`.
        owner: owner of the task.
        retries, retry_delay_s: attempts after the first one, and seconds before each.
        execution_timeout_s: seconds for one attempt; None: no limit.
        pool: None: Airflow's default pool.
        priority_weight: of the task.
        is_paused_upon_creation: None: as Airflow is configured.
    """

    schedule: str | None = None
    dag_id: str | None = None
    description: str | None = None
    start_date: str | None = None
    tags: Sequence[str] = ()
    owner: str = "airflow"
    retries: int = 3
    retry_delay_s: float = 60
    execution_timeout_s: float | None = None
    pool: str | None = None
    priority_weight: int = 1
    is_paused_upon_creation: bool | None = None

    def with_sidecar(self, path: Path) -> DagSettings:
        """These settings, changed by a file; the same if it does not exist.

        Raises:
            ConfigError: it is not a JSON object, or has a member that is not a setting or has the wrong type.
        """
        if not path.is_file():
            return self
        try:
            given = json.loads(path.read_text(), parse_constant=_refuse_constant)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} is not JSON: {error}.") from error
        if not isinstance(given, dict):
            raise ConfigError(f"{path} is not a JSON object.")
        known = {field.name: field.type for field in fields(self)}
        for name, value in given.items():
            if name not in known:
                hint = did_you_mean(nearest(name, known)) or f"Known members: {', '.join(known)}."
                raise ConfigError(f"{path} has an unknown member {name!r}.", suggestion=hint, config_path=name)
            if not _fits(value, str(known[name])):
                raise ConfigError(f"{path}: {name} is {value!r}; expected {known[name]}.", config_path=name)
        return replace(self, **given)


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _fits(value: Any, expected: str) -> bool:
    if value is None:
        return expected.endswith("None")
    if expected.startswith("Sequence"):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if expected.startswith("bool"):
        return isinstance(value, bool)
    kinds: tuple[type, ...] = (int, float) if expected.startswith("float") else (int,)
    return isinstance(value, str if expected.startswith("str") else kinds) and not isinstance(value, bool)


def connector_dags(
    folder: str | Path,
    *,
    worker: Mapping[str, Any] | str | Path | None = None,
    settings: DagSettings | None = None,
    **arguments: Any,
) -> MutableMapping[str, DAG]:
    """Create a DAG for each connector file in a folder, by dag id. Call it at the top level of a DAG file.

    A file that cannot be used becomes an import error of its own in Airflow, under its path. The other files keep their
    DAGs.

    Each task of Airflow reads the DAG file again. There, only the task's own DAG is created at once, and any other one
    when the result is asked for it.

    Args:
        folder: with `*.json` and `*.properties`; subfolders are not searched.
        worker: worker configuration for all of them, or the path of a file with it; the file is read here, for assets,
            and again by each task.
        settings: what holds for connectors without a sidecar file, and for what their sidecar does not set.
        arguments: further arguments of every `ConnectorOperator`, such as `kafka_conn_id`, `spark_conn_id`.

    Raises:
        ConfigError: there is no such folder, or the worker file cannot be read.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ConfigError(f"There is no folder {root}.", suggestion="Give the folder of the connector files.")
    brokers = read_worker_file(worker) if isinstance(worker, (str, Path)) else dict(worker or {})
    asked = get_parsing_context()
    dags = _Dags()
    for path in _connector_files(root):
        try:
            config = _read(path)
            chosen = (settings or DagSettings()).with_sidecar(path.with_name(path.stem + SIDECAR))
            dag_id = chosen.dag_id or _NOT_IN_DAG_ID.sub("_", str(config["name"]))
            if dag_id in dags:
                raise ConfigError(
                    f"{path} and another file of its folder give DAG {dag_id!r}.",
                    suggestion="Give connectors different names, or set dag_id beside one of them.",
                    config_path="name",
                )
            create = partial(_dag, dag_id, path, config, chosen, brokers, {"worker": worker, **arguments})
            # Without a task it may be a command of Airflow that writes what it found into its database: that needs all.
            if asked.task_id is not None and asked.dag_id != dag_id:
                dags.add_later(dag_id, create)
            else:
                dags[dag_id] = create()
        except Exception as error:  # noqa: BLE001 (whatever is wrong with one file, the others keep their DAGs)
            with BrokenConnectorFile(path, error):  # Airflow registers it.
                pass
    return dags


class _Dags(UserDict[str, DAG]):
    """DAGs by dag id, some of which are created when they are first asked for."""

    def add_later(self, dag_id: str, create: Callable[[], DAG]) -> None:
        self.data[dag_id] = create  # type: ignore[assignment]

    def __getitem__(self, dag_id: str) -> DAG:
        found: Any = self.data[dag_id]
        if not isinstance(found, DAG):
            found = self.data[dag_id] = found()
        return found  # type: ignore[no-any-return]


def _connector_files(root: Path) -> Iterator[Path]:
    found = (path for path in sorted(root.iterdir()) if path.suffix in ENDINGS and path.is_file())
    return (path for path in found if not path.name.endswith(SIDECAR))


def _read(path: Path) -> dict[str, Any]:
    config = read_connector_file(path)
    for key in ("name", "connector.class"):
        if not config.get(key):
            raise ConfigError(f"{path} has no {key!r}.", suggestion="Every connector needs it.", config_path=key)
    return config


def _dag(
    dag_id: str,
    path: Path,
    config: Mapping[str, Any],
    chosen: DagSettings,
    brokers: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> DAG:
    inlets, outlets = default_assets(config, brokers)
    kind = str(config["connector.class"]).rpartition(".")[2]
    what = config.get("topics") or config.get("topics.regex") or config.get("topic") or ""
    start = datetime.fromisoformat(chosen.start_date) if chosen.start_date else datetime(2026, 1, 1, tzinfo=UTC)
    limit = chosen.execution_timeout_s
    dag = DAG(
        dag_id=dag_id,
        description=chosen.description or f"{kind} {what}".strip(),
        schedule=chosen.schedule,
        start_date=start if start.tzinfo else start.replace(tzinfo=UTC),
        catchup=False,  # Offsets decide what is copied, not dates.
        max_active_runs=1,
        params=run_params(source=_SOURCE.search(kind) is not None),
        tags=["connector", *chosen.tags],
        is_paused_upon_creation=chosen.is_paused_upon_creation,
    )
    dag.validate()  # type: ignore[no-untyped-call]  # The schedule, for example.
    given: dict[str, Any] = {
        "owner": chosen.owner,
        "retries": chosen.retries,
        "retry_delay": _duration("retry_delay_s", chosen.retry_delay_s),
        "execution_timeout": _duration("execution_timeout_s", limit) if limit else None,
        "priority_weight": chosen.priority_weight,
        **({"pool": chosen.pool} if chosen.pool else {}),
        "add_assets": False,  # They were found above, without reading the file again.
        "inlets": inlets,
        "outlets": outlets,
        **arguments,
    }
    ConnectorOperator(task_id=COPY, dag=dag, config_file=path, **given)
    with dag:  # Only now Airflow registers it.
        pass
    return dag


def _duration(name: str, seconds: float) -> timedelta:
    if not 0 <= seconds <= _LONGEST_S:
        raise ConfigError(f"{name} is {seconds}; expected 0 to {_LONGEST_S} seconds.", config_path=name)
    return timedelta(seconds=seconds)


class BrokenConnectorFile(DAG):
    """Stands for a connector file that cannot be used. Airflow finds out when it serializes it.

    Airflow keeps one import error per path, and drops every DAG that was found under that path. If the DAG file itself
    raised, or if a DAG of it were refused, all others would go. So this DAG names the connector file as its path, and
    cannot be serialized.
    """

    def __init__(self, path: Path, error: Exception) -> None:
        self._path = path
        self._error: Exception | None = None
        self._dag_file: str | None = None
        name = _NOT_IN_DAG_ID.sub("_", path.name)
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}_{hashlib.sha256(path.name.encode()).hexdigest()[:8]}"
        super().__init__(dag_id=f"broken_file_{name}", schedule=None)
        self._error = error

    @property
    def description(self) -> str | None:
        """Airflow reads it to serialize the DAG.

        Raises:
            ConfigError: what is wrong with the file.
        """
        if self._error is None:  # Airflow's own constructor reads it, too.
            return None
        raise ConfigError(f"{self._path} cannot become a DAG: {self._error}")

    @description.setter
    def description(self, value: str | None) -> None:
        """There is none."""

    @property
    def relative_fileloc(self) -> str:
        """Path of the connector file, relative to the bundle like that of a DAG file."""
        if self._dag_file is None:
            return str(self._path)
        return str(Path(self._dag_file).parent / os.path.relpath(self._path, Path(self.fileloc).parent))

    @relative_fileloc.setter
    def relative_fileloc(self, value: str | None) -> None:
        """`value`: the path of the DAG file."""
        self._dag_file = value
