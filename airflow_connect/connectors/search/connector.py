"""The search sink as a connector class: its keys, its task, and what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.api.sink_state import PlannedState, StateAfter
from airflow_connect.connectors.search import filled, indices, keys, mixed, routes
from airflow_connect.connectors.search.changes import change_note
from airflow_connect.connectors.search.client import SearchClient
from airflow_connect.connectors.search.config import DocumentConfig, SearchSinkConfig
from airflow_connect.connectors.search.conflicts import Versions
from airflow_connect.connectors.search.targets import Targets
from airflow_connect.connectors.search.topic_lists import notes_on_entries, notes_on_lists
from airflow_connect.converters.keys_in_kafka import notes_on_spread
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun

_UPSERTS = (
    "There is no order between partitions: fields of an older record may replace those of a newer one. If records of"
    " one document differ, let the producer use the id of the document as key, or a topic with one partition."
)
_NO_VERSIONS = (
    "external.version.header has no effect: only documents whose ids are keys have versions, and neither those of"
    " write.method=upsert nor those of data streams. The order of the log counts, whatever the header has. Remove"
    " it, or use write.method=insert with key.ignore=false and an index."
)
_VERSIONS = (
    "The versions of documents are offsets, which do not compare between partitions: a newer record may not be written,"
    " although it counts as written, or an older one may replace it. If records of one document differ, let the"
    " producer use the id of the document as key, or a topic with one partition, or set external.version.header."
)


_NO_DELETIONS = (
    "behavior.on.null.values=delete has no effect: only documents whose ids are keys can be deleted, and not in data"
    " streams. Records without value are dropped, and count as filtered."
)


class ElasticsearchSinkConnector(SinkConnector):
    """`io.confluent.connect.elasticsearch.ElasticsearchSinkConnector`: records as documents."""

    config_def = SearchSinkConfig.config_def()
    task_class = "airflow_connect.connectors.search.task:ElasticsearchSinkTask"
    delivery = Delivery.IDEMPOTENT

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """At least once if the server chooses ids, or if updates of the same key may overtake one another."""
        try:
            documents = DocumentConfig.from_config(config)
        except ConfigError:
            return cls.delivery  # The check of the configuration says what is wrong.
        return Delivery.IDEMPOTENT if documents.is_idempotent else Delivery.AT_LEAST_ONCE

    @classmethod
    def notes_on_config(cls, config: Mapping[str, str]) -> Sequence[str]:
        """What has no effect: `external.version.header`, deletions, or an entry of a list of topics."""
        try:
            documents = DocumentConfig.from_config(config)
        except ConfigError:
            return ()  # The check of the configuration says what is wrong.
        used = {documents.versions_of(topic) for topic in ("", *documents.ignores_key_of)}
        has_effect = Versions.HEADER in used and not documents.upserts
        versions = () if has_effect or not documents.version_header else (_NO_VERSIONS,)
        deletes = documents.on_null == keys.DELETE
        has_deletions = keys.BY_KEY in documents.used_ids and not documents.is_stream
        deletions = (_NO_DELETIONS,) if deletes and not has_deletions else ()
        return (*versions, *deletions, *notes_on_entries(config, documents))

    @classmethod
    def replaces_by_key(cls, config: Mapping[str, str], *, same_offsets: bool = False) -> bool:
        """If ids are keys; not if a header, or the offset that is the same again, has the versions of documents."""
        try:
            documents = DocumentConfig.from_config(config)
        except ConfigError:
            return False  # The check of the configuration says what is wrong.
        if same_offsets and documents.is_idempotent:
            return False
        return any(map(documents.are_in_order, ("", *documents.ignores_key_of)))

    def check_config(self, config: Mapping[str, str]) -> None:
        """Read the whole configuration, PEM files included.

        Raises:
            ConfigError: a key is wrong.
            MissingPackageError: elastic-transport is not installed.
        """
        SearchClient(SearchSinkConfig.from_config(config).connection).close()

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """Which topics have other partitions than their documents by key, or another id, and where they went."""
        planned = mixed.at_plan(run)
        known = routes.for_tasks(run.kept, self.config)
        return replace(planned, for_tasks={"v": 1, **planned.for_tasks, **known}) if known else planned

    def state_after(self, run: CopiedRun) -> StateAfter:
        """Which topics have filled an index by key, and which index it is.

        Raises:
            SearchError: an index was deleted while the run wrote to it.
            UnavailableError, AccessError: from the server.
        """
        by_key, seen = filled.state_after(run), indices.state_after(run)
        config = SearchSinkConfig.from_config(self.config)
        _check_written(config, run)
        follows = _UPSERTS if config.upserts else _VERSIONS
        spread = [*notes_on_spread(run, "document", follows), *notes_on_lists(run, config)]
        changed = mixed.state_after(run, by_key.kept)
        routed = routes.RoutesAfter(run, self.config)
        kept = {**by_key.kept, **seen.kept, **changed, **routed.kept}
        for part in (filled.FILLED, indices.INDICES, indices.BEHIND) if routed.forgotten else ():
            kept[part] = {name: own for name, own in kept.get(part, {}).items() if name not in routed.forgotten}
        return StateAfter(kept=kept, notes=[*by_key.notes, *spread, *seen.notes, *routed.notes])

    def notes_on_changes(self, changes: Sequence[TopicChange]) -> Sequence[str]:
        """That the order of the records of a key, or the ids of documents, may not be what they were."""
        documents = SearchSinkConfig.from_config(self.config)
        return tuple(note for change in changes if (note := change_note(change, documents)))

    def deletes_by_null(self) -> bool:
        """With `behavior.on.null.values=delete`."""
        return SearchSinkConfig.from_config(self.config).on_null == keys.DELETE

    def stage_without_columns(self) -> str:
        """See `ColumnarSinkConnector`."""
        from airflow_connect.connectors.search.columns import stage_without_columns

        return stage_without_columns(SearchSinkConfig.from_config(self.config))

    def takes_whole_records(self) -> bool:
        """It writes values."""
        return False

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None], topic_ids: Mapping[str, str]
    ) -> bool:
        """Accept every offset: documents keep none, and writing them again changes nothing."""
        return True


def _check_written(config: SearchSinkConfig, run: CopiedRun) -> None:
    """Look again at the aliases to which tasks have written: each has looked at its own end only."""
    written = indices.written_by_tasks(run)
    if not written:
        return
    client = SearchClient(config.connection)
    try:
        targets = Targets(config, client)
        for name, found in sorted(written.items()):
            indices.check_written(name, found, targets.shown(name))
    finally:
        client.close()
