"""Driver role of FileStreamSink: where segments are staged, how they look, and who publishes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api import connector_keys
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.file.config import FILE, FileSinkConfig
from airflow_connect.connectors.file.task import PREFIX, ROOT
from airflow_connect.layout.object_names import TOPIC_CHARACTER
from airflow_connect.stores.leftovers import PROBE_NAME, LeftoverPattern

if TYPE_CHECKING:
    from airflow_connect.api.run import PublishedRun
    from airflow_connect.stores.store import Publisher


def open_driver(context: RoleContext) -> FileSinkDriver:
    """The driver role.

    Raises:
        ConfigError: a key of the sink is wrong, or standard output cannot deliver as `delivery.guarantee` asks.
    """
    config = FileSinkConfig.from_config(context.config)
    if not config.target and context.config.get(connector_keys.DELIVERY_GUARANTEE) == connector_keys.EXACTLY_ONCE:
        raise ConfigError(
            f"{connector_keys.DELIVERY_GUARANTEE} is {connector_keys.EXACTLY_ONCE}, but lines on standard output "
            "cannot be taken back, and a run that fails may have written some of them.",
            suggestion=f"Set {FILE}, or set {connector_keys.DELIVERY_GUARANTEE}={connector_keys.AT_LEAST_ONCE}, or "
            "remove it.",
            config_path=connector_keys.DELIVERY_GUARANTEE,
        )
    return FileSinkDriver(config)


class FileSinkDriver:
    """See `runtime.driver.configuration.SinkDriver`."""

    counted_role = "value"

    def __init__(self, config: FileSinkConfig) -> None:
        """Nothing is touched."""
        self._config = config

    @property
    def store_name(self) -> str:
        """Where lines go."""
        return self._config.store_name

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How segments look that a run over `ranges` stages."""
        prefix = self._config.prefix
        return LeftoverPattern(
            store=self.store_name,
            prefixes=(prefix, PROBE_NAME),
            pattern=rf"{re.escape(prefix)}(?P<topic>{TOPIC_CHARACTER}+)/(?P<partition>\d+)\+(?P<start>\d+)",
            ranges=tuple(ranges),
            probe_prefix=f"{PROBE_NAME}-",
        )

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Nothing is left open between runs."""
        return False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Every task stages where this process says: another one may work in another directory."""
        return [{ROOT: self._config.root, PREFIX: self._config.prefix}] * max_tasks

    def publisher(self) -> Publisher:
        """What appends to the file, or writes to standard output; nothing is touched yet."""
        from airflow_connect.connectors.file.publishing import FilePublisher, OutputPublisher

        return FilePublisher(self._config) if self._config.target else OutputPublisher(self._config)

    def time_keeper(self, topics: Iterable[str]) -> None:
        """Lines have no directories of time."""
        return

    def last_schemas(self, partitions: Iterable[TopicPartition]) -> None:
        """Lines have no schema."""
        return

    def published(self, run: PublishedRun, publisher: Publisher) -> None:
        """Nothing follows."""
