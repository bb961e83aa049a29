"""What a run of any kind has of Kafka: an admin client from its beginning, and what it opened to its end."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from airflow_connect.kafka import client_config
from airflow_connect.kafka.clients import admin_client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_connect.exactly_once.kafka_journal import KafkaJournal
    from airflow_connect.kafka.clients import Admin
    from airflow_connect.kafka.consumer_group import GroupMetadata


class ClusterSession:
    """Clients of one run; a context manager. Those that write are opened by the sessions of sinks and of sources."""

    def __init__(self, worker: Mapping[str, Any], connector: Mapping[str, str]) -> None:
        """Opens nothing; `with` does.

        Args:
            worker: the worker's configuration, references resolved.
            connector: the connector's.
        """
        self._worker = {key: str(value) for key, value in worker.items()}
        self._connector = connector
        self._admin: Admin | None = None
        self._journal: KafkaJournal | None = None
        self._group: GroupMetadata | None = None

    def __enter__(self) -> Self:
        """Connect.

        Raises:
            UnavailableError, AccessError, ConfigError: the cluster cannot be used.
        """
        self._admin = admin_client(client_config.admin_config(self._worker, self._connector).settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        if self._journal is not None:
            self._journal.close()
        if self._group is not None:
            self._group.close()

    @property
    def admin(self) -> Admin:
        """The admin client."""
        if self._admin is None:
            raise RuntimeError("The Kafka session is not open.")
        return self._admin
