"""Where connectors of DAGs keep their runs: the connections and worker configurations that tasks of DAGs name.

Airflow keeps each DAG in its database, with the templated fields of its tasks; no DAG file is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from airflow_connect.airflow.connections.official import (
    BOOTSTRAP_SERVERS,
    DEFAULT_KAFKA_CONN_ID,
    GetConnection,
    extra_of,
    get_connection,
)
from airflow_connect.airflow.connector_arguments import ConnectorArguments
from airflow_connect.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

RUNS_TOPIC = "runs.storage.topic"
_OWN_FIELDS = {"config", "config_file", "worker", "kafka_conn_id", "worker_conn_id", "resolved_config"}
"""Templated fields by which a task of this package is known, whatever its class is called."""
_READ_AT_ONCE = 50
_TEMPLATE = ("{{", "{%")
_CREATED_BY_AIRFLOW = "broker:9092"
"""Brokers of `kafka_default` in a new Airflow (`[database] load_default_connections`)."""


@dataclass(frozen=True, slots=True)
class DagPlace:
    """Brokers and a runs topic that tasks of DAGs name.

    Attributes:
        name: of the installation that the pages show: `conn_id`, and the runs topic if the task names one.
        conn_id: the connection with the brokers; whoever may edit it may change connectors. Without one: the brokers,
            or the name of the file, of the task's own worker configuration.
        worker: the worker configuration of the task.
        kafka_conn_id, worker_conn_id: as the task has them.
    """

    name: str
    conn_id: str
    worker: Mapping[str, Any] | str | None = field(repr=False)
    kafka_conn_id: str | None
    worker_conn_id: str | None

    def worker_config(self) -> dict[str, Any]:
        """The worker configuration as the task makes it, but without its Spark connection.

        Raises:
            ConfigError, UnavailableError: as `ConnectorArguments.worker_config`.
        """
        return ConnectorArguments(
            f"a task of a DAG that uses {self.name}",
            config={},
            worker=self.worker,
            kafka_conn_id=self.kafka_conn_id,
            worker_conn_id=self.worker_conn_id,
        ).worker_config()


def default_place(get: GetConnection = get_connection) -> DagPlace | None:
    """The default connection, unless it is missing or the one that Airflow creates, which points nowhere."""
    try:
        brokers = extra_of(get(DEFAULT_KAFKA_CONN_ID)).get(BOOTSTRAP_SERVERS)
    except ConfigError:
        return None
    if not brokers or brokers == _CREATED_BY_AIRFLOW:
        return None
    return DagPlace(DEFAULT_KAFKA_CONN_ID, DEFAULT_KAFKA_CONN_ID, None, DEFAULT_KAFKA_CONN_ID, None)


class DagPlaces:
    """The places of all DAGs. A DAG is read again when it has changed. Used by one thread at a time."""

    def __init__(self) -> None:
        """Reads nothing."""
        self._of_dag: dict[str, tuple[str, tuple[DagPlace, ...]]] = {}

    def read(self) -> dict[str, DagPlace]:
        """The places by name, those that most tasks use first; without any, the default connection.

        Raises:
            UnavailableError: Airflow's database did not answer.
        """
        from airflow.utils.session import create_session
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with create_session() as session:
                self._refresh(session)
        except SQLAlchemyError as error:
            raise UnavailableError(
                f"Airflow's database did not say which connections the DAGs use ({type(error).__name__})."
            ) from error
        used: dict[str, list[DagPlace]] = {}
        for dag_id in sorted(self._of_dag):
            for place in self._of_dag[dag_id][1]:
                used.setdefault(place.name, []).append(place)
        if not used and (default := default_place()) is not None:
            return {default.name: default}
        return {name: found[0] for name, found in sorted(used.items(), key=lambda item: (-len(item[1]), item[0]))}

    def _refresh(self, session: Session) -> None:
        from airflow.models.serialized_dag import SerializedDagModel
        from sqlalchemy import select

        newest = {dag_id: (row_id, mark) for row_id, dag_id, mark in session.execute(newest_versions())}
        known = {dag_id: found for dag_id, found in self._of_dag.items() if dag_id in newest}
        changed = [row_id for dag_id, (row_id, mark) in newest.items() if known.get(dag_id, ("",))[0] != mark]
        for begin in range(0, len(changed), _READ_AT_ONCE):
            wanted = changed[begin : begin + _READ_AT_ONCE]
            for row in session.scalars(select(SerializedDagModel).where(SerializedDagModel.id.in_(wanted))):
                known[row.dag_id] = row.dag_hash, tuple(places_of(row.data or {}))
                session.expunge(row)  # Thousands of DAGs must not stay in memory together.
        self._of_dag = known


def newest_versions() -> Any:
    """Row, DAG and digest of the newest version of each DAG that still exists."""
    from airflow.models.dag import DagModel
    from airflow.models.dag_version import DagVersion
    from airflow.models.serialized_dag import SerializedDagModel as Stored
    from sqlalchemy import func, select

    newest = (
        select(DagVersion.dag_id, func.max(DagVersion.version_number).label("number"))
        .join(Stored, Stored.dag_version_id == DagVersion.id)
        .group_by(DagVersion.dag_id)
        .subquery()
    )
    return (
        select(Stored.id, Stored.dag_id, Stored.dag_hash)
        .join(DagVersion, Stored.dag_version_id == DagVersion.id)
        .join(newest, (DagVersion.dag_id == newest.c.dag_id) & (DagVersion.version_number == newest.c.number))
        .join(DagModel, DagModel.dag_id == Stored.dag_id)
        .where(DagModel.is_stale.is_(False))
    )


def places_of(serialized: Mapping[str, Any]) -> Iterator[DagPlace]:
    """The places of one DAG, one for each task that has one; `serialized`: as Airflow keeps it."""
    for _, fields in fields_of_tasks(serialized):
        place = _place(fields)
        if place is not None:
            yield place


def fields_of_tasks(serialized: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Id and templated fields of each task of this package; a mapped one comes once for each of its instances."""
    for entry in serialized.get("dag", {}).get("tasks", ()):
        task = _plain(entry)
        if _OWN_FIELDS.issubset(task.get("template_fields", ())):
            yield from ((str(task["task_id"]), fields) for fields in _fields_of(task))


def _fields_of(task: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The fields of a task; of a mapped one, those that all its instances have, with each one's own."""
    if not task.get("_is_mapped"):
        yield {"kafka_conn_id": None, **task}
        return
    shared = {"kafka_conn_id": DEFAULT_KAFKA_CONN_ID, **task.get("partial_kwargs", {})}
    expanded = task.get("expand_input", {})
    own = expanded.get("value")
    if expanded.get("type") == "list-of-dicts" and isinstance(own, list):
        yield from ({**shared, **each} for each in own if isinstance(each, Mapping))
    elif isinstance(own, Mapping) and len(own) == 1 and isinstance(each_of := next(iter(own.values())), list):
        yield from ({**shared, next(iter(own)): each} for each in each_of)
    else:
        yield shared


def _place(fields: Mapping[str, Any]) -> DagPlace | None:
    """The place that a task names; None: only the running task knows it, because of a template."""
    worker, kafka, shared = (fields.get(name) for name in ("worker", "kafka_conn_id", "worker_conn_id"))
    if any(is_template(value) for value in (worker, kafka, shared)):
        return None
    given = worker if isinstance(worker, Mapping) else {}
    brokers = given.get(BOOTSTRAP_SERVERS)
    if any(is_template(given.get(key)) for key in (BOOTSTRAP_SERVERS, RUNS_TOPIC)):
        return None
    own = {key: value for key, value in given.items() if not is_template(value)} if given else worker
    if kafka not in (None, DEFAULT_KAFKA_CONN_ID):
        conn_id = str(kafka)
    else:
        file = PurePosixPath(worker).name if isinstance(worker, str) else None
        conn_id = str(brokers or shared or file or kafka or "")
    topic = given.get(RUNS_TOPIC)
    # It is one segment of an address, and brokers may be written with a scheme: SSL://broker:9093.
    name = (f"{conn_id}:{topic}" if topic else conn_id).replace("/", "_")
    return DagPlace(name, conn_id, own, kafka, shared) if conn_id else None


def is_template(value: Any) -> bool:
    """Whether only the running task knows a value."""
    return isinstance(value, str) and any(mark in value for mark in _TEMPLATE)


def _plain(value: Any) -> Any:
    """A value without the envelopes in which Airflow keeps dictionaries and times."""
    if isinstance(value, Mapping):
        if "__var" in value:
            return _plain(value["__var"])
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [_plain(each) for each in value]
    return value
