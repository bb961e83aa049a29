"""`${airflow:connection:field}` and `${airflow:var:name}`: Airflow's connections and variables in a configuration.

A run that Airflow starts has this provider under the name `airflow`, unless its worker configures another one under
that name. Connections and variables are looked up as tasks do: secrets backends first, then Airflow's API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.airflow.connections.official import GetConnection, extra_of, get_connection
from airflow_connect.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from airflow.sdk import Connection

PROVIDER_NAME = "airflow"
VARIABLES = "var"
FIELDS = ("host", "port", "login", "password", "schema", "conn_type", "uri")
EXTRA = "extra"

GetVariable = Callable[[str], "str | None"]


def get_variable(name: str) -> str | None:
    """The text of a variable, None if there is none.

    Raises:
        UnavailableError: Airflow's API server did not answer.
    """
    from airflow.sdk import Variable
    from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType

    try:
        value = Variable.get(name)
    except AirflowRuntimeError as error:
        if error.error.error == ErrorType.VARIABLE_NOT_FOUND:
            return None
        raise UnavailableError(f"Airflow did not answer when variable {name!r} was read.") from error
    except ConnectionError as error:
        raise UnavailableError(f"Airflow did not answer when variable {name!r} was read.") from error
    return value if value is None or isinstance(value, str) else json.dumps(value)


class AirflowConfigProvider:
    """Fields of connections (`FIELDS`, `extra`, `extra.<key>`) and, under the path `var`, variables."""

    def __init__(self, connection: GetConnection = get_connection, variable: GetVariable = get_variable) -> None:
        """Read through these two functions."""
        self._connection = connection
        self._variable = variable

    def configure(self, settings: Mapping[str, str]) -> None:
        """Accepts no settings.

        Raises:
            ConfigError: a setting is given.
        """
        for name in settings:
            raise ConfigError(
                "The config provider of Airflow has no settings.",
                config_path=name,
                suggestion="Remove it.",
            )

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """Fields of the connection `path`, or variables.

        Raises:
            ConfigError: no path is given, there is no such connection, or it has no such field.
            UnavailableError: Airflow did not answer.
        """
        if not path:
            raise ConfigError(
                "The reference names no connection.",
                code="config.reference_incomplete",
                suggestion="Write it as ${airflow:connection_id:password}, or ${airflow:var:name} for a variable.",
            )
        if path == VARIABLES:
            found = {key: self._variable(key) for key in keys}
        else:
            connection = self._connection(path)
            found = {key: _field(connection, key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def close(self) -> None:
        """Nothing is open."""


def _field(connection: Connection, name: str) -> str | None:
    """A field as text, None when the connection leaves it empty.

    Raises:
        ConfigError: connections have no such field.
    """
    first, _, inner = name.partition(".")
    if first == EXTRA:
        return _text(_inside(extra_of(connection), inner) if inner else connection.extra)
    if name not in FIELDS:
        raise ConfigError(
            f"A connection has no field called {name!r}.",
            code="config.reference_missing",
            suggestion=f"Use one of {', '.join(FIELDS)}, {EXTRA} or {EXTRA}.<key>.",
        )
    return _text(connection.get_uri() if name == "uri" else getattr(connection, name))


def _inside(extra: Any, path: str) -> Any:
    """The member `path` of an object; a dot may be part of a name or lead into a nested object."""
    if not isinstance(extra, Mapping):
        return None
    if path in extra:
        return extra[path]
    head, dot, rest = path.partition(".")
    return _inside(extra.get(head), rest) if dot else None


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value)
