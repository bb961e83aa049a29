"""The task of a DAG that runs a connector: its configuration, as Airflow keeps it, and where it is written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.airflow.connector_arguments import ConnectorArguments
from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.ui.web.dag_places import fields_of_tasks, is_template


@dataclass(frozen=True, slots=True)
class DagTask:
    """A task of a DAG.

    Attributes:
        dag_id, task_id: of the task.
        file, line: where it is written; line 0: not found there.
        config: of the connector, references unresolved; it may hold secrets.
        templates: keys whose values are templates, which only the running task renders.
    """

    dag_id: str
    task_id: str
    file: str
    line: int
    config: Mapping[str, str | None] = field(repr=False)
    templates: tuple[str, ...] = ()


def read_task(dag_id: str, task_id: str, connector: str) -> DagTask:
    """The task, with the connector's configuration from the DAG, from its file, and from its database connection.

    Raises:
        ConfigError: the DAG has no such task any more, or the configuration cannot be read on this machine.
        UnavailableError: Airflow's database did not answer.
    """
    kept, source = _kept(dag_id)
    found = [fields for name, fields in fields_of_tasks(kept) if name == task_id]
    if not found:
        raise ConfigError(f"DAG {dag_id} has no task {task_id} any more.", code="airflow.dag_task")
    fileloc = str(kept.get("dag", {}).get("fileloc", ""))
    configs = [(fields, config) for fields in found if (config := _config_of(fields, task_id, fileloc)) is not None]
    matching = [config for _, config in configs if config.get("name") == connector]
    chosen = matching or [config for _, config in configs if is_template(config.get("name"))]
    if not chosen:
        raise ConfigError(
            f"Only the running task {task_id} of DAG {dag_id} knows the configuration of {connector}.",
            code="airflow.dag_task",
            suggestion="It is a template, or an earlier task makes it. The rendered templates of a task that has run"
            " show it.",
        )
    config = {key: None if value is None else str(value) for key, value in chosen[0].items()}
    templates = tuple(sorted(key for key, value in config.items() if is_template(value)))
    return DagTask(dag_id, task_id, fileloc, _line(source, task_id), config, templates)


def _config_of(fields: Mapping[str, Any], task_id: str, fileloc: str) -> dict[str, Any] | None:
    """The configuration; None: it is not kept with the DAG.

    Raises:
        ConfigError: its file cannot be read here, or is not in the DAG's folder; or its database connection is missing.
    """
    config, file, database = (fields.get(name) for name in ("config", "config_file", "db_conn_id"))
    if is_template(file) or is_template(database) or not (isinstance(config, Mapping) or isinstance(file, str)):
        return None
    if isinstance(file, str) and not isinstance(config, Mapping):
        _refuse_elsewhere(file, fileloc)
    arguments = ConnectorArguments(
        f"task {task_id!r}",
        config=config if isinstance(config, Mapping) else None,
        config_file=None if isinstance(config, Mapping) else file,
        db_conn_id=database,
    )
    return dict(arguments.connector_with_database().config)


def _refuse_elsewhere(file: str, fileloc: str) -> None:
    """Show no file of this machine because a DAG names it: only those in the folder of the DAG, or below it.

    Raises:
        ConfigError: it is another one.
    """
    folder = os.path.dirname(os.path.realpath(fileloc))
    if "://" not in file and not os.path.realpath(file).startswith(f"{folder}{os.sep}"):
        raise ConfigError(
            f"The configuration is in {file}, which is not in the folder of the DAG ({folder}). It is not read here.",
            code="airflow.dag_task",
            suggestion="Keep it beside the DAG file, or in object storage.",
        )


def _kept(dag_id: str) -> tuple[Mapping[str, Any], str]:
    """The newest version of a DAG as Airflow keeps it, and its source."""
    from airflow.models.dagcode import DagCode
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with create_session() as session:
            model: Any = SerializedDagModel  # its method has no types
            row = session.scalar(model.latest_item_select_object(dag_id))
            if row is None:
                raise ConfigError(f"Airflow knows no DAG {dag_id} any more.", code="airflow.dag_task")
            query = select(DagCode.source_code).where(DagCode.dag_version_id == row.dag_version_id)
            return row.data or {}, session.scalar(query) or ""
    except SQLAlchemyError as error:
        raise UnavailableError(f"Airflow's database did not show DAG {dag_id} ({type(error).__name__}).") from error


def _line(source: str, task_id: str) -> int:
    """The line that names the task, by `task_id=` or as the name of a decorated function; 0: there is none."""
    name = re.escape(task_id)
    mark = re.compile(rf"""task_id\s*=\s*["']{name}["']|^\s*def {name}\(""")
    return next((number for number, line in enumerate(source.splitlines(), 1) if mark.search(line)), 0)
