"""Consumer groups after a restore: their offsets, translated and set, for the command and the operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_connect.counting import names
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_connect.connectors.restore.connector import RestoreConnector
    from airflow_connect.connectors.restore.documents import Documents, RunDocument
    from airflow_connect.connectors.restore.groups.step import GroupOffsets
    from airflow_connect.runtime.spec import RunSpec


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """Which groups get their offsets, and how.

    Attributes:
        groups: Java regular expression that matches the whole name of a group; "": all.
        document: run of the sink whose document has the offsets; "": the newest.
        only_shows: set none.
        overwrites: also set groups that have committed other offsets in the restored topics.
    """

    groups: str = ""
    document: str = ""
    only_shows: bool = False
    overwrites: bool = False


def restore_groups(spec: RunSpec, choice: GroupChoice) -> GroupOffsets:
    """Translate the offsets of groups that a backup has, and set them in the topics that `spec` has restored.

    Returns:
        The offsets; groups that could not be set are in `failures`.

    Raises:
        ConfigError: the connector is no restore, or the backup has no document.
        OffsetError: a topic is not the one that was restored.
        DataError: a topic holds other records than the backup, or a file cannot be read.
        ConnectError: Kafka or the store refused, or does not answer.
    """
    from airflow_connect.connectors.restore.documents import Documents
    from airflow_connect.connectors.restore.groups.step import apply, foresee, translate
    from airflow_connect.connectors.restore.same_topic import ensure_same_topics
    from airflow_connect.java.patterns.compiled import compile_java_pattern
    from airflow_connect.runtime.driver.source.kafka_session import SourceSession

    configuration = SourceConfiguration.from_spec(spec)
    connector = restore_connector(configuration)
    pattern = compile_java_pattern(choice.groups) if choice.groups else None
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        try:
            raw = configuration.resolved.connector.raw
            restored = connector.restored(raw, kafka.read_offsets().items(), spec.aws)
            documents = Documents(restored.store, restored.backup.documents)
            topics = {tp.topic for tp in (*restored.backup.chains, *restored.progress)}
            by_topic = _documents(documents, choice.document, topics, restored.typed.root)
            ensure_same_topics(documents, by_topic, restored.backup.chains, restored.progress)
            document, missing = _as_one(by_topic, topics)
            found = translate(
                restored,
                document,
                lambda group: pattern is None or pattern.fullmatch(group) is not None,
                kafka.admin,
                configuration.consumer.settings,
            )
            found.notes = [*documents.notes, *missing, *found.notes]
            if choice.only_shows:
                foresee(found, kafka.admin)
            else:
                apply(found, kafka.admin, overwrite=choice.overwrites)
            return found
        finally:
            connector.stop()


def restore_connector(configuration: SourceConfiguration) -> RestoreConnector:
    """The connector of a restore, not started.

    Raises:
        ConfigError: it is another one.
    """
    from airflow_connect.connectors.restore.connector import RestoreConnector

    if not issubclass(configuration.connector_class, RestoreConnector):
        raise ConfigError(
            f"{configuration.name} does not restore a backup.",
            code="restore.no_restore",
            config_path="connector.class",
            suggestion="Name the configuration with which the topics were restored.",
        )
    return configuration.connector_class()


def _documents(documents: Documents, run_id: str, topics: Collection[str], root: str) -> Mapping[str, RunDocument]:
    """The document for each topic of the backup; topics that none has are missing."""
    by_topic: Mapping[str, RunDocument]
    if run_id:
        named = (one for one in documents if one.name.rpartition("/")[2] == f"{run_id}.json")
        by_topic = {topic: one for one in named for topic in one.topics if topic in topics}
    else:
        by_topic = documents.of_topics(topics)
    if not by_topic:
        what = f"of run {run_id}" if run_id else "of a run of the sink"
        raise ConfigError(
            f"{root} has no document {what} with offsets of consumer groups for {names(sorted(topics))}."
            + "".join(f" {note}" for note in documents.notes),
            code="restore.no_document",
            suggestion="Sinks write one with each run of a backup, below +runs. Backups of earlier releases have none.",
        )
    return by_topic


def _as_one(by_topic: Mapping[str, RunDocument], topics: Collection[str]) -> tuple[RunDocument, Sequence[str]]:
    """What documents say about topics of the backup, as one; with a sentence about topics that none has."""
    used = {one.name: one for one in by_topic.values()}
    missing = sorted(set(topics) - by_topic.keys())
    told = f"No document has {names(missing)}, so no group gets an offset there."
    groups: dict[str, list[tuple[str, int, int, str]]] = {}
    for name, one in used.items():
        for group, offsets in one.groups.items():
            of_document = [at for at in offsets if at[0] in by_topic and by_topic[at[0]].name == name]
            groups.setdefault(group, []).extend(of_document)
    oldest = min(used.values(), key=lambda one: one.written_ms)  # no offset is of an earlier time
    return replace(oldest, name=names(sorted(used)), groups=groups), [told] if missing else []


__all__ = ["GroupChoice", "restore_connector", "restore_groups"]
