"""What the sensors have in common: one look per poke, or a trigger that looks for all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_connect.airflow.connections.official import DEFAULT_KAFKA_CONN_ID
from airflow_connect.airflow.connector_arguments import ConnectorArguments, as_path
from airflow_connect.airflow.rendering import ConfigurationTemplates
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.observe.watches.conditions import SourceChanges
from airflow_connect.triggers.looking import Outage
from airflow_connect.triggers.peek import PeekTrigger
from airflow_connect.triggers.request import PeekRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_connect.observe.watches.observation import Observation
    from airflow_connect.observe.watches.reader import ClusterReader, Watch
    from airflow_connect.runtime.spec import RunSpec

DEFERRABLE = ("operators", "default_deferrable")


class PeekingSensor(ConfigurationTemplates, BaseSensorOperator):
    """Waits until a look finds what is wanted; the XCom is a small dictionary with what it has found.

    A broker that does not answer does not fail the sensor before its `timeout`. An error that waiting does not repair,
    such as a missing topic or a refused login, fails it at once, without retries.

    Args:
        deferrable: wait in the triggerer, without a worker slot; by default Airflow's
            `[operators] default_deferrable`. Otherwise `mode` decides: `poke` or `reschedule`.
        kwargs: as for every sensor: `poke_interval`, `timeout`, `mode`, `soft_fail`, ...
    """

    template_fields: Sequence[str] = ()
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json", "worker": "json"}
    ui_color = "#e6f1f2"

    def __init__(self, *, deferrable: bool | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deferrable = conf.getboolean(*DEFERRABLE, fallback=False) if deferrable is None else deferrable
        self._request: PeekRequest | None = None
        self._watch: Watch | None = None
        self._spec: RunSpec | None = None
        self._reader: ClusterReader | None = None
        self._outage: Outage | None = None

    @abstractmethod
    def request(self) -> PeekRequest:
        """Where to look and what for, after templates are rendered.

        Raises:
            ConfigError: an argument cannot be used.
        """

    def execute(self, context: Context) -> Any:
        """Look once; if that is not enough, wait as the sensor is told to."""
        if not self.deferrable:
            return super().execute(context)
        try:
            found = self.poke(context)
            return found.xcom_value if isinstance(found, PokeReturnValue) else self._defer(self._checked_request())
        except AirflowFailException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(error)) from error
            raise

    def _defer(self, request: PeekRequest) -> Any:
        trigger = PeekTrigger(**request.to_json(), poll_interval=max(1.0, self.poke_interval))
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """What the trigger has found becomes the XCom.

        Raises:
            AirflowFailException: looking has failed in a way that waiting does not repair.
        """
        error = event.get("error")
        if error is not None:
            text = f"{error['message']} {error['suggestion']}".rstrip()
            raise AirflowFailException(f"{error['code']}: {text}")
        return event["found"]

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Look once.

        Raises:
            AirflowFailException: waiting does not help.
        """
        outage = self._outage = self._outage or Outage(self.log)
        try:
            seen = self._look()
        except ConnectError as error:
            if not error.retriable:
                raise AirflowFailException(f"{error.code}: {error}") from error
            outage.begin(error)
            return False
        outage.end()
        return PokeReturnValue(is_done=True, xcom_value=dict(seen.facts)) if seen.is_reached else False

    def _checked_request(self) -> PeekRequest:
        try:
            request = self._request or self.request()
            request.ensure_no_secrets()
        except ConnectError as error:
            if error.retriable:
                raise
            raise AirflowFailException(f"{error.code}: {error}") from error
        return request

    def _look(self) -> Observation:
        """One look from this process; files and connections are read, and clients opened, by the first one.

        Raises:
            ConnectError: it failed.
        """
        request = self._request = self._request or self.request()
        if isinstance(request.condition, SourceChanges):
            from airflow_connect.observe.watches.sources import observe_source

            self._spec = self._spec or request.spec()
            return observe_source(self._spec)
        from airflow_connect.observe.watches.reader import ClusterReader

        self._watch = self._watch or request.watch()
        self._reader = self._reader or ClusterReader(self._watch.target.cluster)
        (answer,) = self._reader.observe([self._watch])
        if isinstance(answer, ConnectError):
            raise answer
        return answer


class ConnectorSensor(PeekingSensor):
    """Looks at a connector.

    Args:
        config: connector configuration as for Kafka Connect. Templated; references as for `ConnectorOperator`.
        config_file: path of a properties or JSON file with it, instead of `config`. Templated.
        worker: worker configuration, or the path of a file with it. Templated.
        worker_conn_id: connection of type `connect_worker`; None: not used.
        kafka_conn_id: connection with the brokers, as for `ConnectorOperator`.
        aws_conn_id: connection with credentials for S3, for sources that read there.
        db_conn_id: connection to the database of a JDBC source, as for `ConnectorOperator`.
        kwargs: as for `PeekingSensor`.
    """

    template_fields: Sequence[str] = ("config", "config_file", "worker")

    def __init__(  # noqa: PLR0913 (a sensor's arguments are keywords, each with a default)
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        worker_conn_id: str | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        aws_conn_id: str | None = None,
        db_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.config_file = as_path(config_file)
        self.worker = as_path(worker)
        self.worker_conn_id = worker_conn_id
        self.kafka_conn_id = kafka_conn_id
        self.aws_conn_id = aws_conn_id
        self.db_conn_id = db_conn_id

    def arguments(self) -> ConnectorArguments:
        """What names the connector."""
        return ConnectorArguments(
            f"task {self.task_id!r}",
            config=self.config,
            config_file=self.config_file,
            worker=self.worker,
            worker_conn_id=self.worker_conn_id,
            kafka_conn_id=self.kafka_conn_id,
            aws_conn_id=self.aws_conn_id,
            db_conn_id=self.db_conn_id,
        )


class TopicsSensor(PeekingSensor):
    """Looks at topics, of any producer.

    Args:
        topics: a name, several separated by commas, or a list. Templated.
        topics_regex: Java regular expression instead, as `topics.regex` of a sink. Templated.
        worker: client settings, or the path of a worker's file. Templated.
        worker_conn_id: connection of type `connect_worker`; None: not used.
        kafka_conn_id: connection with the brokers, as for `ConnectorOperator`.
        kwargs: as for `PeekingSensor`.
    """

    template_fields: Sequence[str] = ("topics", "topics_regex", "worker")

    def __init__(
        self,
        *,
        topics: str | Sequence[str] | None = None,
        topics_regex: str | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        worker_conn_id: str | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topics = topics
        self.topics_regex = topics_regex
        self.worker = as_path(worker)
        self.worker_conn_id = worker_conn_id
        self.kafka_conn_id = kafka_conn_id

    def arguments(self) -> ConnectorArguments:
        """The topics as the configuration of a sink that has nothing else."""
        topics = self.topics if isinstance(self.topics, str) else ",".join(self.topics or ())
        given = {"topics": topics, "topics.regex": self.topics_regex}
        return ConnectorArguments(
            f"task {self.task_id!r}",
            config={"name": self.task_id, **{key: value for key, value in given.items() if value}},
            worker=self.worker,
            worker_conn_id=self.worker_conn_id,
            kafka_conn_id=self.kafka_conn_id,
        )


def milliseconds(given: datetime | str | None, name: str) -> int | None:
    """A time as milliseconds since the epoch; without a zone it is in UTC.

    Raises:
        ConfigError: the text is not a time of ISO 8601.
    """
    if given is None or given == "":
        return None
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise ConfigError(
            f"{name} is {given!r}, which is not a time.",
            config_path=name,
            suggestion="Write it as 2026-11-23T10:00:00+00:00.",
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def milliseconds_of(given: timedelta | float | None) -> int | None:
    """A duration as milliseconds; a number is in seconds."""
    if given is None:
        return None
    return round((given.total_seconds() if isinstance(given, timedelta) else given) * 1000)
