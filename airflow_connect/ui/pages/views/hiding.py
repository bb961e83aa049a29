"""Configurations as pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from airflow_connect.api.config.values import masked
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values


def shown_config(config: Mapping[str, str | None]) -> dict[str, str]:
    """The configuration: references as written, secrets hidden, also where one is part of another value."""
    names = _secret_names(config.get("connector.class") or "")
    redact = Redactor(secret_values(config, secret_names=names))
    return {key: "" if value is None else redact(str(value)) for key, value in masked(config, names).items()}


@cache
def _secret_names(connector_class: str) -> frozenset[str]:
    """Keys of type PASSWORD of a class; none if it is not installed here."""
    from airflow_connect.config.resolved.loading import connector_definition

    try:
        return frozenset(connector_definition({"connector.class": connector_class}).secret_names)
    except ConnectError:
        return frozenset()
