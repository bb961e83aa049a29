"""What a backup of whole records needs beside the records: one document for each run, written when it publishes.

`<topics.dir>/+runs/<connector>/<run id>.json` has the settings and partitions of every topic that the connector
consumes, the offsets of all consumer groups there, and the schemas whose ids the records contain. All of it is asked
for after the files are visible and before their offsets are committed, so a run that dies in between leaves it to the
run that recovers it. No topic is called `+runs`: Kafka forbids the character.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.coverage import COVERAGE
from airflow_connect.connectors.files.shared.publishing.state_document import KeptState
from airflow_connect.connectors.files.shared.settings.whole_records import REGISTRY
from airflow_connect.counting import names, plural
from airflow_connect.errors import DataError
from airflow_connect.layout.names.escaping import escape

if TYPE_CHECKING:
    from airflow_connect.api.cluster_facts import ClusterFacts
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.layout.names.object_names import NameSettings
    from airflow_connect.registry.client import SchemaRegistryClient
    from airflow_connect.stores.store import FilePublisher

VERSION = 1
RUNS = "+runs"


class BackupDocuments:
    """The step after publishing that writes them."""

    def __init__(
        self,
        connector: str,
        own_group: str,
        layout: NameSettings,
        cluster: Callable[[], ClusterFacts],
        registry: Mapping[str, str],
    ) -> None:
        """Nothing is asked yet.

        Args:
            connector: its name.
            own_group: its consumer group, which is left out: its offsets are where the backup ends.
            layout: where files go.
            cluster: what Kafka knows.
            registry: settings of the Schema Registry, or {}.

        Raises:
            ConfigError: a setting of the registry is wrong.
        """
        self._connector, self._own_group, self._layout, self._cluster = connector, own_group, layout, cluster
        self._registry = None
        if registry:
            from airflow_connect.registry.client import open_registry

            self._registry = open_registry(REGISTRY, registry)

    def check(self, topics: Collection[str]) -> None:
        """Ask before anything is copied: a run should not fail only when its files are visible.

        Raises:
            ConnectError: Kafka or the registry refused, or did not answer.
        """
        self._cluster().group_offsets(topics)
        if self._registry is not None:
            self._registry.reach()

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> Sequence[str]:
        """Write the document of a run that has files.

        Raises:
            ConnectError: Kafka, the registry or the store refused, or did not answer.
        """
        if not run.files:
            return ()
        cluster = self._cluster()
        topics = cluster.topics(run.topics)
        groups = cluster.group_offsets(topics)
        kept = KeptState.from_json(run.kept)
        ids = kept.schema_ids
        schemas, notes = self._schemas(ids)
        document = {
            "v": VERSION,
            "connector": self._connector,
            "run_id": run.run_id,
            "planned_ms": run.created_ms,
            "written_ms": time.time_ns() // 1_000_000,
            "cluster_id": cluster.cluster_id,
            "topics": {
                name: {
                    "id": one.topic_id,
                    "partitions": one.partitions,
                    "replication_factor": one.replication_factor,
                    "settings": dict(sorted(one.settings.items())),
                    "schema_ids": dict(ids.get(name, {})),
                }
                for name, one in sorted(topics.items())
            },
            "copied": _copied(run.files),
            COVERAGE: kept.coverage.to_json(),
            "groups": {
                group: [[tp.topic, tp.partition, at.offset, at.metadata] for tp, at in sorted(offsets.items())]
                for group, offsets in sorted(groups.items())
                if group != self._own_group
            },
            "schemas": schemas,
        }
        publisher.write(self._key(run.run_id), json.dumps(document, ensure_ascii=False, indent=1).encode())
        gone = sorted(set(run.topics) - topics.keys())
        if gone:
            notes = (*notes, f"The settings of topic {names(gone)} are not in the backup: Kafka no longer has it.")
        return notes

    def _key(self, run_id: str) -> str:
        delimiter = self._layout.directory_delimiter
        return f"{self._layout.prefix}{delimiter.join((RUNS, escape(self._connector, delimiter), run_id))}.json"

    def _schemas(self, ids: Mapping[str, Mapping[str, Any]]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """The schemas that the registry has of these ids, and sentences about the others."""
        if self._registry is None:
            return [], ()
        wanted: set[int] = set()
        notes: list[str] = []
        for topic, parts in sorted(ids.items()):
            for part, numbers in parts.items():
                if numbers is None:
                    notes.append(
                        f"The {part}s of topic {topic} do not seem to have ids of schemas: there are too many."
                        " No schema of them is in the backup."
                    )
                wanted.update(numbers or ())
        found, unknown = _read(self._registry, wanted)
        if unknown:
            notes.append(
                f"The Schema Registry does not know {plural(len(unknown), 'id')} with which keys or values begin:"
                f" {names(list(map(str, unknown)))}. They may be other data, or deleted schemas."
            )
        return found, tuple(notes)


def _read(registry: SchemaRegistryClient, ids: Iterable[int]) -> tuple[list[dict[str, Any]], list[int]]:
    """Documents of these schemas and of all that they refer to, and the ids that the registry does not know."""
    found: dict[int, dict[str, Any]] = {}
    unknown = []
    waiting = sorted(ids, reverse=True)
    while waiting:
        schema_id = waiting.pop()
        if schema_id in found:
            continue
        try:
            schema = registry.schema(schema_id)
        except DataError as error:
            if error.code != "data.schema_id":
                raise
            unknown.append(schema_id)
            continue
        subjects = registry.subjects_of(schema_id)
        found[schema_id] = {"id": schema_id, "schemaType": schema.kind, **schema.to_json(), "subjects": subjects}
        for used in schema.references:
            waiting.append(registry.version(used.subject, used.version).schema_id)
    return [found[schema_id] for schema_id in sorted(found)], unknown


def _copied(files: Iterable[StagedFile]) -> list[dict[str, Any]]:
    """What the files of a run hold: an entry for each partition."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for file in files:
        known = found.setdefault(
            (file.topic, file.partition),
            {"topic": file.topic, "partition": file.partition, "start": file.start, "end": file.end}
            | {"records": 0, "files": 0},
        )
        known["start"], known["end"] = min(known["start"], file.start), max(known["end"], file.end)
        known["records"] += file.records
        known["files"] += 1
    return [found[place] for place in sorted(found)]
