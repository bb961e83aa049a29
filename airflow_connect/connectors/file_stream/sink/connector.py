"""FileStreamSink as a connector class: its key, its task, where segments are staged, and who publishes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.publishing import LeftoverPattern, Publisher
from airflow_connect.api.schema import Type
from airflow_connect.api.sink import Delivery, StagingSinkConnector
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.connectors.file_stream.sink.config import (
    NO_TEXT,
    PREFIX,
    ROOT,
    FileSinkConfig,
    FileSinkKeys,
    writes_to_stdout,
)
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.schema import Schema


class FileStreamSinkConnector(StagingSinkConnector):
    """`org.apache.kafka.connect.file.FileStreamSinkConnector`: one line per record, in a file or on standard output."""

    config_def = FileSinkKeys.config_def()
    task_class = "airflow_connect.connectors.file_stream.sink.task:FileStreamSinkTask"

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """At least once for standard output: written lines cannot be undone, and it does not store offsets."""
        return Delivery.AT_LEAST_ONCE if writes_to_stdout(config) else Delivery.STAGED

    def check_config(self, config: Mapping[str, str]) -> None:
        """Standard output cannot deliver exactly once.

        Raises:
            ConfigError: a key of the sink is wrong, or `delivery.guarantee` requests exactly once.
        """
        target = FileSinkConfig.from_config(config).target
        if not target and config.get(SinkKeys.delivery_guarantee.name) == keys.EXACTLY_ONCE:
            raise ConfigError(
                f"{SinkKeys.delivery_guarantee} is {keys.EXACTLY_ONCE}, but lines on standard output "
                "cannot be taken back, and a run that fails may have written some of them.",
                suggestion=f"Set {FileSinkKeys.file}, or set {SinkKeys.delivery_guarantee}={keys.AT_LEAST_ONCE}, or"
                " remove it.",
                config_path=SinkKeys.delivery_guarantee.name,
            )

    def store_name(self, config: Mapping[str, str]) -> str:
        """Where lines go."""
        return FileSinkConfig.from_config(config).store_name

    def stage_without_columns(self) -> str:
        """See `ColumnarSinkConnector`."""
        return ""

    def takes_whole_records(self) -> bool:
        """It writes values."""
        return False

    def stage_without_columns_of(self, schema: Schema | None) -> str:
        """See `ColumnarSinkConnector`."""
        return "" if schema is not None and schema.type is Type.STRING else NO_TEXT

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Every task stages in the folder that this process determines: its own working directory may differ."""
        config = FileSinkConfig.from_config(self.config)
        return [{ROOT: config.root, PREFIX: config.prefix}] * max_tasks

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How to recognise segments staged by a run over `ranges`."""
        from airflow_connect.layout.names.object_names import TOPIC_CHARACTER
        from airflow_connect.stores.store import PROBE_NAME

        config = FileSinkConfig.from_config(self.config)
        return LeftoverPattern(
            store=config.store_name,
            prefixes=(config.prefix, PROBE_NAME),
            pattern=rf"{re.escape(config.prefix)}(?P<topic>{TOPIC_CHARACTER}+)/(?P<partition>\d+)\+(?P<start>\d+)",
            ranges=tuple(ranges),
            probe_prefix=f"{PROBE_NAME}-",
        )

    def publisher(self) -> Publisher:
        """What appends to the file, or writes to standard output; opens nothing yet."""
        from airflow_connect.connectors.file_stream.sink.publishing import FilePublisher, OutputPublisher

        config = FileSinkConfig.from_config(self.config)
        return FilePublisher(config) if config.target else OutputPublisher(config)
