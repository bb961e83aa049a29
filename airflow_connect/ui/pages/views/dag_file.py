"""A connector as a DAG: a DAG file and its connector file. Secrets become references to Airflow's connections."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_connect.api.config import plugins
from airflow_connect.runtime.driver.class_of_connector import is_source
from airflow_connect.ui.pages.views.form import LOGINS
from airflow_connect.ui.pages.views.hiding import shown_config

_ODD = re.compile(r"[^A-Za-z0-9_]+")
_OWN_LOGIN = ("aws.access.key.id", "s3.credentials.provider.class")
_DAG = '''"""Runs the connector {name} every hour. Its configuration is {file_name}, in the same folder."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id={dag_id},
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from offsets, not from the date of a run
    max_active_runs=1,
    params=run_params({params}),  # the trigger form asks how much to copy
):
    ConnectorOperator(
        task_id="copy",
        config_file=Path(__file__).with_name({json_text}),
        {place},
{more}        retries=3,
        retry_delay=timedelta(minutes=1),
    )
'''
_AWS = """        # aws_conn_id="aws_default",  # a connection; without it, the credentials of the machine
"""


@dataclass(frozen=True, slots=True)
class NeededConnection:
    """A connection that has to be made, because its secret was typed into the form.

    Attributes:
        conn_id: exactly this one.
        fields: each of its fields, login or password, with the key whose value it holds.
    """

    conn_id: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DagFiles:
    """Both files.

    Attributes:
        dag_name, file_name: their names, for one folder.
        needed: connections to make.
    """

    dag_name: str
    dag: str = field(repr=False)
    file_name: str
    json: str = field(repr=False)
    needed: tuple[NeededConnection, ...]

    @property
    def downloads(self) -> tuple[tuple[str, str, str], ...]:
        """Name, text and address of each file. The address holds the file itself, so nothing is kept here."""
        both = ((self.dag_name, self.dag), (self.file_name, self.json))
        return tuple((name, text, _address(text)) for name, text in both)


def dag_files(config: Mapping[str, str | None], place: str) -> DagFiles:
    """The files for a configuration without mistakes.

    Args:
        config: as the form has it, secrets included.
        place: the argument of an operator that reaches the installation, as Python text.
    """
    name = str(config["name"])
    slug = _slug(name)
    needed = _needed(config, slug)
    places = {key: f"${{airflow:{one.conn_id}:{part}}}" for one in needed for part, key in one.fields}
    written = {key: places.get(key, value) for key, value in config.items()}
    file_name = f"{slug}.json"
    dag = _DAG.format(
        name=_in_docstring(name),
        file_name=file_name,
        dag_id=json.dumps(slug),
        json_text=json.dumps(file_name),
        params="source=True" if _is_source(config) else "",
        place=place,
        more=_AWS if "s3.bucket.name" in config and not any(key in config for key in _OWN_LOGIN) else "",
    )
    text = json.dumps(written, indent=2, ensure_ascii=False) + "\n"
    return DagFiles(f"{slug}.py", dag, file_name, text, needed)


def _needed(config: Mapping[str, str | None], slug: str) -> tuple[NeededConnection, ...]:
    """One connection for a login and the first other secret, and one for each further secret."""
    shown = shown_config(config)
    hidden = [key for key, value in config.items() if value is not None and shown[key] != value]
    logins = [key for key in hidden if key.endswith(LOGINS)][:1]
    others = [key for key in hidden if key not in logins]
    pair = (*(("login", key) for key in logins), *(("password", key) for key in others[:1]))
    first = (NeededConnection(slug, pair),) if pair else ()
    return (*first, *(NeededConnection(f"{slug}_{_slug(key)}", (("password", key),)) for key in others[1:]))


def _slug(text: str) -> str:
    return _ODD.sub("_", text).strip("_") or "connector"


def _in_docstring(name: str) -> str:
    return re.sub(r'[\\"\r\n]', " ", name)


def _is_source(config: Mapping[str, str | None]) -> bool:
    return is_source(plugins.resolve_connector(config))


def _address(text: str) -> str:
    return f"data:text/plain;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
