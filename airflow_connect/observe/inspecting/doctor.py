"""Checks everything that a run needs before it runs: software, brokers, permissions, buckets, registry, databases.

Each check says what it did, what it found, and what to do. One that fails does not keep the others from being made.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_connect import __version__
from airflow_connect.api.json_document import JsonDocument
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.counting import counted
from airflow_connect.errors import ConnectError
from airflow_connect.observe.inspecting.doctor_of_stores import check_bucket_of, check_database_of, check_directory_of
from airflow_connect.runtime.engine.pyspark_versions import PysparkVersionsError, ensure_one_version, version_of
from airflow_connect.runtime.machines import has_other_machines, sent_names
from airflow_connect.runtime.worker_check import check_registries, check_worker

if TYPE_CHECKING:
    from airflow_connect.config_providers.resolving import ProviderFactory
    from airflow_connect.runtime.spec import RunSpec

SERVERS = "servers of the worker"
JAVA_PLUGINS = "Java plugins"
_NOT_TRIED = (
    "Nothing was tried: of what connectors read and write beside Kafka, only buckets, directories and databases are"
    " tried."
)
_PACKAGES = ("confluent-kafka", "pyarrow", "fastavro", "pyspark", "pyspark-client", "apache-airflow")


@dataclass(frozen=True, slots=True)
class Check(JsonDocument):
    """A check.

    Attributes:
        did: what was tried, as a title.
        found: a sentence.
        to_do: what helps, a sentence, or "".
        is_ok: False: a run would fail, or lose its safety.
    """

    did: str
    found: str
    to_do: str = ""
    is_ok: bool = True


def examine(
    worker: Mapping[str, Any],
    specs: list[RunSpec],
    *,
    deep: bool,
    providers: Mapping[str, ProviderFactory] | None = None,
    runs_here: bool = True,
) -> Iterator[Check]:
    """Make the checks of a worker, and of connectors.

    Args:
        worker: the configuration, as written.
        specs: runs of the connectors.
        deep: also permissions of Kafka, stores, databases and clocks.
        providers: config providers that need no configuration, such as Airflow's.
        runs_here: whether this machine copies; others need no Spark.
    """
    yield from check_software(runs_here=runs_here)
    try:
        references = resolve_references({}, worker, providers=providers)
    except ConnectError as error:
        yield failed("config providers", error)
        return
    for checked in check_worker(worker, references):
        yield Check(SERVERS, checked.sentence, is_ok=checked.is_ok)
    yield from attempt(JAVA_PLUGINS, lambda: _java_plugins(references.resolve(worker)))
    if runs_here:
        yield from check_executors(references.resolve(worker))
    if not deep:
        return
    yield from attempt("state topics", lambda: _refused_topics(references.resolve(worker), of_runs=True))
    yield from attempt("state topics", lambda: _refused_topics(references.resolve(worker), of_runs=False))
    yield from attempt("permissions on state topics", lambda: _state_topics(references.resolve(worker)))
    for spec in specs:
        name = spec.connector.get("name")
        yield from attempt(f"{name}: topics and group", partial(_topics_of, spec))
        yield from attempt(f"{name}: Schema Registry", partial(_registries_of, spec))
        stores = [
            *attempt(f"{name}: bucket", partial(_checks_of, check_bucket_of, spec)),
            *attempt(f"{name}: directory", partial(_checks_of, check_directory_of, spec)),
            *attempt(f"{name}: database", partial(_checks_of, check_database_of, spec)),
        ]
        yield from stores or [Check(f"{name}: other systems", _NOT_TRIED)]


def attempt(did: str, check: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """The results of a check; an error of ours is a result, too."""
    try:
        yield from check()
    except ConnectError as error:
        yield failed(did, error)


def failed(did: str, error: ConnectError) -> Check:
    """The result of a check that an error has ended."""
    return Check(did, error.message, error.suggestion, is_ok=False)


def check_software(*, runs_here: bool = True) -> Iterator[Check]:
    """Packages, their versions, Java: what needs no configuration."""
    found = {name: version_of(name) for name in _PACKAGES}
    listed = ", ".join(f"{name} {number}" for name, number in found.items() if number)
    yield Check("versions", f"airflow-connect {__version__} on Python {platform.python_version()}, {listed}.")
    if not found["pyspark"]:
        yield Check(
            "Spark",
            "pyspark is not installed: runs can only be planned here.",
            'Where runs copy, install it: pip install "airflow-connect[spark]"',
            is_ok=not runs_here,
        )
        return
    try:
        ensure_one_version()
    except PysparkVersionsError as error:
        yield failed("Spark", error)
    else:
        yield from attempt("Java", _java)


def _java() -> Iterator[Check]:
    from airflow_connect.jvm.java import find_java

    java = find_java()
    yield Check("Java", f"Java {java.version} at {java.home}.")


def check_executors(worker: Mapping[str, Any]) -> Iterator[Check]:
    """What executors on other machines need, and what they get of this environment; nothing if tasks run here.

    Args:
        worker: the configuration, resolved.
    """
    spark = {key: str(value) for key, value in worker.items() if key.startswith("spark.")}
    if not has_other_machines(spark):
        return
    python = spark.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    minor = ".".join(map(str, sys.version_info[:2]))
    names = sent_names()
    logins = f"get {', '.join(names)}" if names else "get no login"
    yield Check(
        "executors",
        f"Tasks run on other machines, with airflow-connect {__version__} in a Python {minor} at {python}."
        f" Executors without a login of their own {logins} of this environment.",
    )


def _java_plugins(worker: Mapping[str, Any]) -> Iterator[Check]:
    """What `plugin.path` has on this machine, and what of it cannot be used."""
    from airflow_connect.jvm.discovery.registry import use_plugin_path

    catalogue = use_plugin_path(worker)
    if catalogue is None:
        return
    there = counted(len(catalogue.locations), "folder or jar", "folders and jars")
    yield Check(JAVA_PLUGINS, f"plugin.path has {there} with {counted(len(catalogue.plugins), 'class', 'classes')}.")
    for warning in catalogue.warnings:
        yield Check(JAVA_PLUGINS, warning, is_ok=False)


def _refused_topics(worker: Mapping[str, Any], *, of_runs: bool) -> Iterator[Check]:
    """Nothing, unless runs would refuse the topic for runs, or else that for offsets of sources."""
    from airflow_connect.config.resolved.worker import WorkerConfig
    from airflow_connect.kafka.clients.settings import admin_config
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.state import compacted_topics, runs_topic, worker_topics

    admin = admin_client(admin_config(worker, {}).settings)
    typed = WorkerConfig.from_properties(worker)
    if of_runs:
        runs_topic.check(admin, typed.runs_topic, typed.runs_partitions)
    else:
        compacted_topics.check(admin, worker_topics.offsets(typed, typed.sources.offsets_topic, _nothing))
    yield from ()


def _state_topics(worker: Mapping[str, Any]) -> Iterator[Check]:
    from airflow_connect.config.resolved.worker import WorkerConfig
    from airflow_connect.kafka.admin.permissions import missing_on_topics
    from airflow_connect.kafka.clients.settings import admin_config
    from airflow_connect.kafka.clients.short_lived import admin_client

    admin = admin_client(admin_config(worker, {}).settings)
    typed = WorkerConfig.from_properties(worker)
    wanted = [typed.runs_topic, typed.sources.offsets_topic, typed.sources.config_topic]
    there = [name for name in dict.fromkeys(wanted) if _exists(admin, name)]
    missing = {topic: ops for topic, ops in missing_on_topics(admin, there, ("READ", "WRITE")).items() if ops}
    if there:
        yield from told_permissions("permissions on state topics", missing, ", ".join(there), "READ and WRITE")
    absent = [name for name in dict.fromkeys(wanted) if name not in there]
    if absent:
        yield Check("state topics", f"{', '.join(absent)} will be created by the first run that needs it.")


def _exists(admin: Any, topic: str) -> bool:
    from airflow_connect.kafka.admin.new_topics import partition_count

    return partition_count(admin, topic) is not None


def told_permissions(did: str, missing: Mapping[str, list[str]], where: str, what: str) -> Iterator[Check]:
    """A check for each place with missing operations; or one that says that `what` is permitted at `where`."""
    for place, operations in missing.items():
        yield Check(
            did,
            f"{', '.join(operations)} on {place} is not permitted.",
            f"kafka-acls.sh --add --allow-principal User:... --operation {' --operation '.join(operations)}",
            is_ok=False,
        )
    if not missing:
        yield Check(did, f"{where}: {what} are permitted.")


def _nothing(_: str) -> None:
    """Nothing is created, so there is nothing to tell."""


def _registries_of(spec: RunSpec) -> Iterator[Check]:
    references = resolve_references(spec.connector, spec.worker, spec.references)
    for checked in check_registries(spec.connector, references):
        yield Check(f"{spec.connector.get('name')}: Schema Registry", checked.sentence, is_ok=checked.is_ok)


def _topics_of(spec: RunSpec) -> Iterator[Check]:
    from airflow_connect.runtime.driver.sink.of_spec import sink_of

    name = spec.connector.get("name")
    did = f"{name}: topics and group"
    configuration = sink_of(spec)
    if configuration is None:
        return
    from airflow_connect.kafka.admin.permissions import missing_on_group, missing_on_topics
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

    with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
        topics = sorted(kafka.log_state(RunLimits()).topic_ids)
        missing = missing_on_topics(kafka.admin, topics, ("READ", "DESCRIBE"))
        group = configuration.resolved.consumer_group
        missing[f"group {group}"] = missing_on_group(kafka.admin, group, ("READ", "DESCRIBE"))
        kafka.ensure_group_empty()
        queue = configuration.dead_letter_topic
        queue_exists = bool(queue) and _exists(kafka.admin, queue)
        refused = missing_on_topics(kafka.admin, [queue], ("WRITE", "DESCRIBE")) if queue_exists else {}
    wanted = {place: operations for place, operations in missing.items() if operations}
    yield from told_permissions(did, wanted, f"{', '.join(topics)} and group {group}", "READ and DESCRIBE")
    if queue_exists:
        refused = {place: operations for place, operations in refused.items() if operations}
        yield from told_permissions(f"{name}: dead letter queue", refused, queue, "WRITE and DESCRIBE")
    elif queue:
        yield Check(f"{name}: dead letter queue", f"{queue} will be created by the first run that copies something.")


def _checks_of(check: Callable[[RunSpec], Iterator[tuple[str, str, str, bool]]], spec: RunSpec) -> Iterator[Check]:
    for result in check(spec):
        yield Check(*result)
