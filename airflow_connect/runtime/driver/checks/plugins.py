"""What the class of any connector, sink or source, must fulfil before a run starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.config.keys import sink as keys
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from airflow_connect.api.connector import Connector


def refuse_incomplete(name: str, connector: type[Connector], methods: Sequence[str] = ()) -> None:
    """The class must define every method without a default, and the class of its tasks.

    Args:
        name: the class as the configuration names it.
        connector: the class.
        methods: what it lacks in addition to abstract methods.

    Raises:
        ConfigError: names what is missing.
    """
    missing = [] if hasattr(connector, "task_class") else ["task_class"]
    missing += sorted({*getattr(connector, "__abstractmethods__", ()), *methods})
    if missing:
        raise ConfigError(
            f"The connector class {name} is not complete: it lacks {', '.join(missing)}.",
            suggestion=f"What a connector must define: {page_url('how-to/write-a-connector')}",
            config_path=keys.CONNECTOR_CLASS,
        )


def refuse_wrong_values(name: str, connector: type[Connector], config: Mapping[str, str]) -> None:
    """The connector's own `validate` must find no mistake.

    Args:
        name: the class as the configuration names it.
        connector: the class.
        config: the connector's configuration.

    Raises:
        ConnectError: what it finds, or raises itself.
        ConfigError: it fails with another kind of error.
    """
    try:
        values = connector.validate(config)
    except ConnectError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{name}.validate failed with {type(error).__name__} instead of returning what is wrong.",
            suggestion="Correct the connector: validate never raises.",
            config_path=keys.CONNECTOR_CLASS,
        ) from error
    wrong = [value for value in values if value.errors]
    if wrong:
        raise connector.config_def.error_of(wrong)
