"""Whether the servers that a configuration names can be used: brokers, transactional ids, Schema Registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.errors import ConnectError
from airflow_connect.registry.connection import RegistryConnection
from airflow_connect.registry.settings import RegistryConfig

_TRIED_ID = "airflow-connect.connection.test"
"""End of the transactional id that is tried. Only another test of a connection would be fenced by it."""
_CONVERTERS = ("key.converter.", "value.converter.")
_QUICKLY = {"max.retries": "0", "http.connect.timeout.ms": "5000", "http.read.timeout.ms": "5000"}


class Checked(NamedTuple):
    """One thing that was tried, as a sentence."""

    is_ok: bool
    sentence: str


def check_worker(worker: Mapping[str, Any], references: ResolvedReferences) -> list[Checked]:
    """Connect as a run would. Nothing is written, except that Kafka remembers a transactional id for some days.

    Args:
        worker: a worker configuration, as written.
        references: the values of its references.

    Returns:
        One entry for each thing that was tried. After brokers that cannot be used, the registry is still tried.
    """
    resolved = references.resolve(worker)
    try:
        group_id = WorkerConfig.from_properties(resolved).group_id
    except ConnectError as error:
        return [_failed(error, references)]
    tried = [_tried(partial(_reach_kafka, resolved), references)]
    if tried[0].is_ok:
        tried.append(_tried(partial(_take_transactional_id, resolved, group_id), references))
    registries = [_tried(partial(_reach_registry, found), references) for found in _registries(resolved)]
    return [*tried, *dict.fromkeys(registries)]


def check_registries(connector: Mapping[str, Any], references: ResolvedReferences) -> list[Checked]:
    """Connect to the Schema Registries that a connector names for itself; one entry for each.

    Args:
        connector: its configuration, as written.
        references: the values of its references.
    """
    found = _registries(references.resolve(connector))
    return list(dict.fromkeys(_tried(partial(_reach_registry, settings), references) for settings in found))


def _tried(check: Callable[[], str], references: ResolvedReferences) -> Checked:
    try:
        return Checked(True, check())
    except ConnectError as error:
        return _failed(error, references)


def _failed(error: ConnectError, references: ResolvedReferences) -> Checked:
    references.hide_in_error(error)
    return Checked(False, f"{error.message} {error.suggestion}".strip())


def _reach_kafka(worker: Mapping[str, Any]) -> str:
    from airflow_connect.kafka.clients.settings import admin_config
    from airflow_connect.kafka.clients.short_lived import admin_client

    admin = admin_client(admin_config(worker, {}).settings)
    return f"Kafka answers at {admin.settings['bootstrap.servers']}."


def _take_transactional_id(worker: Mapping[str, Any], group_id: str) -> str:
    """Runs use `<group.id>-<connector>`: only a fence shows whether the prefix is permitted."""
    from airflow_connect.kafka.clients.settings import producer_config
    from airflow_connect.kafka.writing.transactions import TransactionalWriter

    writer = TransactionalWriter(producer_config(worker, {}).settings, f"{group_id}-{_TRIED_ID}")
    try:
        writer.fence()
    finally:
        writer.close()
    return f"Transactional ids that start with group.id={group_id} are permitted."


def _registries(worker: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The settings of each converter that names a registry, without their prefix."""
    for prefix in _CONVERTERS:
        settings = {key[len(prefix) :]: str(value) for key, value in worker.items() if key.startswith(prefix)}
        if settings.get(RegistryConfig.urls.name):
            yield settings


def _reach_registry(settings: Mapping[str, str]) -> str:
    given = {**settings, **_QUICKLY}
    connection = RegistryConnection(RegistryConfig.config_def().parse(given), given)
    connection.request("GET", "/schemas/types", access="read the types of schemas")
    return f"The Schema Registry answers at {_without_login(settings[RegistryConfig.urls.name])}."


def _without_login(urls: str) -> str:
    return ",".join(url if "@" not in url else _hidden(url) for url in urls.split(","))


def _hidden(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
