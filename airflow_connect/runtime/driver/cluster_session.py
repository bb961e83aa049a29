"""The Kafka clients of a run: an admin client, opened at the start, and clients that are closed at the end."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from airflow_connect.config.resolved.client_layers import CONSUMER, PRODUCER
from airflow_connect.errors import ConfigError, ConnectError, FencedError
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, admin_client
from airflow_connect.kafka.state.topic_upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_connect.exactly_once.kafka_journal import KafkaJournal
    from airflow_connect.kafka.admin.consumer_group import GroupMetadata
    from airflow_connect.kafka.clients.short_lived import Admin
    from airflow_connect.kafka.writing.unimportant import UnimportantWriter
    from airflow_connect.runtime.driver.checked_configuration import CheckedConfiguration


class ClusterSession:
    """Clients of one run; a context manager. The subclasses for sinks and sources open the clients that write.

    Attributes:
        notes: sentences for the report, about state topics.
    """

    def __init__(self, configuration: CheckedConfiguration[Any]) -> None:
        """Opens nothing; `with` does."""
        self._clients = configuration
        self.notes: list[str] = []
        self._admin: Admin | None = None
        self._journal: KafkaJournal | None = None
        self._group: GroupMetadata | None = None
        self._progress: UnimportantWriter | None = None

    def __enter__(self) -> Self:
        """Connect.

        Raises:
            UnavailableError, AccessError, ConfigError: the cluster cannot be used.
        """
        self._admin = admin_client(self._clients.admin.settings)
        for kind in (CONSUMER, PRODUCER):
            self._ensure_same_cluster(kind)
        return self

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster."""
        return str(self.admin.cluster_id(API_TIMEOUT_S))

    def _ensure_same_cluster(self, kind: str) -> None:
        """Offsets of one cluster mean nothing in another one; records and state share a transaction."""
        own: Mapping[str, Any] = getattr(self._clients, kind).settings
        servers, known = own.get("bootstrap.servers"), self.admin.settings.get("bootstrap.servers")
        if servers in (None, known):
            return
        there = admin_client(own)
        try:
            is_same = there.cluster_id(API_TIMEOUT_S) == self.admin.cluster_id(API_TIMEOUT_S)
        finally:
            there.close()
        if not is_same:  # The same cluster may have several listeners.
            raise ConfigError(
                f"The {kind} and the admin client reach different Kafka clusters: {servers} and {known}.",
                suggestion="The plan, the records and the state of a run must be in one cluster. Set the same"
                f" bootstrap.servers for all clients, e.g. admin.override.bootstrap.servers={servers} along with"
                f" {kind}.override.bootstrap.servers.",
                config_path=f"{kind}.override.bootstrap.servers",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        if self._progress is not None:
            self._progress.close()
        if self._journal is not None:
            self._journal.close()
        if self._group is not None:
            self._group.close()
        if self._admin is not None:
            self._admin.close()

    def tell_end(self, end: Mapping[str, Any]) -> str:
        """Let sensors know how the run has ended, if it has no entry in the history.

        Returns:
            A warning if they cannot know; otherwise "".
        """
        try:
            if self._journal is not None:
                self._journal.tell_end(end)
        except FencedError:
            return ""  # The newer run is what they wait for.
        except ConnectError as error:
            return f"Sensors that wait for this run do not learn how it has ended: {error.message}"
        return ""

    def tell_progress(self, progress: Mapping[str, Any]) -> str:
        """Let pages know how far the run is. Returns at once; a broker that does not answer delays nothing.

        Returns:
            Why they cannot know; otherwise "".
        """
        if self._journal is None:
            return ""
        if self._progress is None:
            from airflow_connect.kafka.writing.unimportant import UnimportantWriter

            self._progress = UnimportantWriter(self._clients.producer.settings)
        return self._progress.send(self._journal.progress_record(progress))

    def _upkeep(self, settings: Mapping[str, str]) -> Upkeep:
        return Upkeep(settings, self._clients.resolved.worker.alters_state_topics, self.notes.append)

    @property
    def admin(self) -> Admin:
        """The admin client."""
        if self._admin is None:
            raise RuntimeError("The Kafka session is not open.")
        return self._admin
