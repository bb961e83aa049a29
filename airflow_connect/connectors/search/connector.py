"""The search sink as a connector class: its keys, its task, and what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.api.sink_state import StateAfter
from airflow_connect.connectors.search import filled, indices, keys
from airflow_connect.connectors.search.changes import change_note
from airflow_connect.connectors.search.client import SearchClient
from airflow_connect.connectors.search.config import DocumentConfig, SearchSinkConfig
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_state import CopiedRun


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

    def check_config(self, config: Mapping[str, str]) -> None:
        """Read the whole configuration, PEM files included.

        Raises:
            ConfigError: a key is wrong.
            MissingPackageError: elastic-transport is not installed.
        """
        SearchClient(SearchSinkConfig.from_config(config).connection).close()

    def state_after(self, run: CopiedRun) -> StateAfter:
        """Which topics have filled an index by key, and which index it is."""
        by_key, seen = filled.state_after(run), indices.state_after(run)
        return StateAfter(kept={**by_key.kept, **seen.kept}, notes=[*by_key.notes, *seen.notes])

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
