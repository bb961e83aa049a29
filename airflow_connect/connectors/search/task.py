"""The task of the search sink: records to documents, documents to requests."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.columns import NullValues
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.sink import SinkTask
from airflow_connect.connectors.search import keys, routes
from airflow_connect.connectors.search.bulks import Bulk, Waiting, column_bulks
from airflow_connect.connectors.search.client import SearchClient
from airflow_connect.connectors.search.columns import column_actions, has_columns
from airflow_connect.connectors.search.config import SearchSinkConfig
from airflow_connect.connectors.search.conflicts import Conflicts, Versions
from airflow_connect.connectors.search.documents import DocumentMaker, no_value
from airflow_connect.connectors.search.filled import TARGETS
from airflow_connect.connectors.search.indices import BEHIND, CREATED, INDICES, WRITTEN
from airflow_connect.connectors.search.mixed import are_mixed
from airflow_connect.connectors.search.sending import BulkSender
from airflow_connect.connectors.search.targets import Target, Targets
from airflow_connect.connectors.search.topic_lists import MOST_NAMES, RENAMED
from airflow_connect.converters import placeholders
from airflow_connect.converters.keys_in_kafka import KeysInKafka
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

log = logging.getLogger(__name__)


_LOOKED_AT = 10
"""Documents at the beginning of a partition of which it is asked whether an interrupted run has written them."""


class ElasticsearchSinkTask(SinkTask):
    """Writes documents."""

    repeats_put = False  # Requests are repeated here, with `max.retries`.

    def __init__(self) -> None:
        """Opens nothing."""
        self._config: SearchSinkConfig | None = None
        self._client: SearchClient | None = None
        self._sender: BulkSender | None = None
        self._targets: Targets | None = None
        self._maker: DocumentMaker | None = None
        self._waiting: dict[Target, Waiting] = {}
        self._conflicts = Conflicts({})
        self._filled: dict[tuple[str, int], set[str]] = {}
        self._begun: set[tuple[str, int, str]] = set()  # partitions and targets
        self._renamed: dict[tuple[str, int], set[str]] = {}
        self._mixed: set[tuple[str, str]] = set()  # topics in Kafka and targets
        self._changed: set[tuple[str, str]] = set()  # the same
        self._routes: dict[tuple[str, int], dict[tuple[str, str], str]] = {}  # (renamed, target) -> form
        self._created: set[str] = set()
        self._unavailable: Counter[str] = Counter()  # target -> documents with a placeholder
        self._has_told_indices = False
        self._keys = KeysInKafka()
        self._makers = ""  # of keys: see routes.py

    @property
    def needs_keys(self) -> bool:  # type: ignore[override]
        """Whether the ids of some documents are keys."""
        return self._config is not None and self._config.may_use_keys

    def start(self, config: Mapping[str, str]) -> None:
        """Read the configuration; does not connect yet.

        Raises:
            ConfigError: a key of the sink is wrong.
            MissingPackageError: elastic-transport is not installed.
        """
        self._config = settings = SearchSinkConfig.from_config(self.context.run.config)
        self._client = SearchClient(settings.connection)
        self._sender = BulkSender(self._client, settings)
        self._targets = Targets(settings, self._client)
        self._maker = DocumentMaker(settings)
        self._makers = routes.makers_of(self.context.run.config)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Learn where the partitions end, and that all nodes are of one cluster.

        Raises:
            SearchError: they are not.
        """
        assert self._client is not None
        self._conflicts = Conflicts({one.topic_partition: one.end for one in self.context.ranges})
        if untold := self._client.check_one_cluster():
            self.context.note(
                "It could not be seen whether all nodes of connection.url are of one cluster, because the user may not"
                f" ask {', '.join(untold)} for it (GET /). With several clusters, each would get a part of the"
                " documents."
            )

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Add documents to requests, and send those that are full."""
        assert self._config is not None and self._sender is not None
        self._report_answers()
        for record in records:
            try:
                self._add(record)
            except DataError as error:
                if self._config.drops_invalid:
                    self.context.leave_out(record, error)
                else:
                    self.context.errant_record_reporter.report(record, error)
        now = time.monotonic()
        for waiting in list(self._waiting.values()):
            if self._sender.is_idle and (now - waiting.since_s) * 1000 >= self._config.linger_ms:
                self._send(waiting)
        while sum(len(waiting.actions) for waiting in self._waiting.values()) > self._config.buffered:
            self._send(max(self._waiting.values(), key=lambda waiting: len(waiting.actions)))

    @property
    def null_values(self) -> NullValues:
        """By `behavior.on.null.values`; see `NullDroppingSinkTask`."""
        assert self._config is not None
        return NullValues.REPORTED if self._config.on_null == keys.IGNORE else NullValues.NEEDED

    def count_null_values(self, count: int) -> None:
        """Nothing is kept of them."""

    def accepts_columns(self) -> bool:
        """Whether documents can be made of columns."""
        return self._config is not None and has_columns(self._config)

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """Send documents made of columns; see `ColumnarSinkTask`.

        Their order among requests does not matter: ids are offsets, or the server compares versions.
        """
        assert self._config is not None and self._sender is not None and self._targets is not None
        self._report_answers()
        made: list[tuple[RecordColumns, Any]] = []
        for batch in batches:
            actions = column_actions(self._config, batch)
            if actions is None:
                return False
            made.append((batch, actions))
        try:
            targets = [self._targets.of(batch.topic, batch.value.schema) for batch, _ in made]
        except DataError:
            return False
        for target, (batch, actions) in zip(targets, made, strict=True):
            self._note_target(target, batch, batch.offsets[:_LOOKED_AT].tolist())
            self._see_keys(target, batch)
            self._count_unavailable(target, batch.topic, placeholders.in_lines(actions))
            for bulk in column_bulks(target, actions, batch, self._limits):
                self._send_bulk(bulk)
        return True

    def details(self, partition: TopicPartition) -> dict[str, Any]:
        """The targets of the partition, and how it fills them; with the first partition, the indices of the task."""
        targets = self._filled.get((partition.topic, partition.partition))
        found: dict[str, Any] = {TARGETS: sorted(targets)} if targets else {}
        if routed := self._routes.get((partition.topic, partition.partition)):
            found[routes.ROUTES] = [[*route, form] for route, form in sorted(routed.items())]
        found |= self._keys.details(partition)
        if renamed := self._renamed.get((partition.topic, partition.partition)):
            found[RENAMED] = sorted(renamed)
        targets_seen = self._targets
        if not self._has_told_indices and targets_seen is not None and (targets_seen.ids or targets_seen.behind):
            self._has_told_indices = True
            found |= {INDICES: targets_seen.ids, BEHIND: targets_seen.behind, CREATED: sorted(self._created)}
            found |= {WRITTEN: {name: own for name, own in targets_seen.written.items() if own}}
        return found

    def flush(self) -> tuple[()]:
        """Send what waits, and wait for all answers."""
        assert self._sender is not None
        for waiting in list(self._waiting.values()):
            self._send(waiting)
        self._sender.wait()
        self._report_answers()
        assert self._targets is not None
        elsewhere = self._sender.take_elsewhere()
        self._targets.check_are_there(elsewhere.written)
        assert self._maker is not None
        moved = elsewhere.notes(self._targets.known)
        for note in (*self._conflicts.take_notes(), *self._maker.take_notes(), *moved):
            self.context.note(note)
        found, self._unavailable = self._unavailable, Counter()
        for target, count in found.items():
            self.context.note(placeholders.sentence(target, {"documents": count}))
        self._name_created()
        for note in self._targets.notes:
            self.context.note(note)
        return ()

    def _name_created(self) -> None:
        """Say that an index was created although the run begins in the middle of a topic: it may have been deleted."""
        assert self._targets is not None
        created, self._targets.created = self._targets.created, []
        self._created.update(created)
        first = next((f"{one.topic_partition} from offset {one.start}" for one in self.context.ranges if one.start), "")
        topics = {target: topic for (topic, _), found in self._routes.items() for _, target in found}
        state = self.context.run.state
        for name in created if first else ():
            if routes.is_expected(state, topics.get(name, ""), name):
                continue
            self.context.note(
                f"{name} was missing and was created. This run writes {first} on. If earlier runs have written the"
                " records before, and it was deleted, they are not in it: set the offsets of the connector back, to"
                " write them again."
            )

    def abort(self) -> None:
        """Drop what waits; what was sent is written again by the next run, and that changes nothing."""
        self._waiting.clear()

    def stop(self) -> None:
        """End threads and connections."""
        if self._sender is not None:
            self._sender.close()
        if self._client is not None:
            self._client.close()

    def _add(self, record: SinkRecord) -> None:
        """Add the document of a record.

        Raises:
            DataError: the record cannot become a document.
        """
        assert self._config is not None and self._maker is not None and self._targets is not None
        assert self._sender is not None
        action = self._maker.action(record)
        if action is None:
            self.context.leave_out(record, no_value(record) if self._config.on_null == keys.IGNORE else None)
            return
        target = self._targets.of(record.topic, record.value_schema, has_value=record.value is not None)
        self._note_target(target, record, [record.offset])
        place = TopicPartition(record.original_topic, record.original_partition)
        if self._config.are_in_order(record.topic):
            key = str(record.key)
            self._keys.sketches.see(place, record.offset, target.name, (key,))
            if record.consumed is not None and self._keys.wanted(place):
                self._keys.see(place, record.offset, (target.name, key), record.consumed.key)
        self._count_unavailable(target, record.topic, int(placeholders.QUOTED in action.lines))
        waiting = self._waiting.get(target)
        limit = self._sender.bulk_bytes
        if waiting is not None and limit is not None and waiting.size_bytes + len(action.lines) > limit:
            self._send(waiting)
            waiting = None
        if waiting is None:
            waiting = self._waiting[target] = Waiting(target, time.monotonic())
        waiting.add(action, record)
        if len(waiting.actions) >= self._sender.batch_size:
            self._send(waiting)

    def _note_target(self, target: Target, records: SinkRecord | RecordColumns, offsets: Sequence[int]) -> None:
        """Before documents are sent. `offsets`: of the first records."""
        assert self._config is not None and self._targets is not None
        renamed = self._renamed.setdefault((records.original_topic, records.original_partition), set())
        if len(renamed) < MOST_NAMES and (self._config.ignores_key_of or self._config.ignores_schema_of):
            renamed.add(records.topic)
        begun = (records.original_topic, records.original_partition, target.name)
        if begun not in self._begun:
            self._begun.add(begun)
            if self._config.ids_of(records.topic) == keys.BY_OFFSET:
                ids = [f"{records.original_topic}+{records.original_partition}+{offset}" for offset in offsets]
                self._targets.look_for_earlier(target.name, ids)
        routed = self._routes.setdefault((records.original_topic, records.original_partition), {})
        if (records.topic, target.name) not in routed:
            form = routed[records.topic, target.name] = routes.form_of(self._config, records.topic, self._makers)
            place, ids = (records.original_topic, target.name), self._targets.ids_of(target.name)
            if routes.are_changed(self.context.run.state, place, form, ids):
                self._changed.add(place)
        if not self._config.upserts and self._config.versions_of(records.topic) is Versions.OFFSETS:
            ids = self._targets.ids_of(target.name)
            if are_mixed(self.context.run.state, records.original_topic, target.name, ids):
                self._mixed.add((records.original_topic, target.name))
            self._filled.setdefault((records.original_topic, records.original_partition), set()).add(target.name)

    def _see_keys(self, target: Target, batch: RecordColumns) -> None:
        """The same as for each record in `_add`."""
        assert self._config is not None
        place = TopicPartition(batch.original_topic, batch.original_partition)
        if batch.key is None or not self._config.are_in_order(batch.topic):
            return
        self._keys.sketches.see_columns(place, batch.offsets, target.name, [batch.key.values])
        wanted = min(self._keys.wanted(place), len(batch))
        if not wanted:
            return
        ids = [(target.name, str(key)) for key in batch.key.values.slice(0, wanted).to_pylist()]
        self._keys.see_columns(place, batch.offsets[:wanted], ids, batch.read_records(batch.indexes[:wanted]))

    def _count_unavailable(self, target: Target, topic: str, count: int) -> None:
        """Count documents with Debezium's placeholder, where they replace others."""
        assert self._config is not None
        if count and not self._config.is_stream and self._config.ids_of(topic) == keys.BY_KEY:
            self._unavailable[target.name] += count

    def _limits(self) -> tuple[int, int | None]:
        """Maximum number of records and bytes of the next request."""
        assert self._config is not None and self._sender is not None
        return min(self._sender.batch_size, self._config.buffered), self._sender.bulk_bytes

    def _send(self, waiting: Waiting) -> None:
        assert self._sender is not None
        del self._waiting[waiting.target]
        self._send_bulk(waiting.sealed())

    def _send_bulk(self, bulk: Bulk) -> None:
        """Send a request; one at a time where a conflict must not come from a later request that was faster."""
        assert self._sender is not None
        if any(name == bulk.target.name for _, name in (*self._mixed, *self._changed)):
            self._sender.wait()
        self._sender.send(bulk)

    def _report_answers(self) -> None:
        """Count conflicts, and apply `behavior.on.malformed.documents`, in the thread of the task."""
        assert self._sender is not None and self._config is not None
        for conflict in self._sender.take_conflicts():
            place = conflict.place
            own, versions = (place.topic, conflict.target), self._config.versions_of(place.renamed)
            are_mixed, are_changed = own in self._mixed, own in self._changed
            if self._conflicts.add(conflict, versions, are_mixed=are_mixed, are_changed=are_changed):
                self.context.leave_out(SinkRecord(topic=place.topic, partition=place.partition, offset=place.offset))
        for record, error in self._sender.take_rejected():
            if self._config.on_malformed == keys.FAIL:
                self.context.errant_record_reporter.report(record, error)
                continue
            if self._config.on_malformed == keys.WARN:
                log.warning("%s", error.message)
            self.context.leave_out(record, error)
