"""Copy a range of a connector's topics again, or its dead letters, as an Airflow task."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.counting import plural
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.operators.connector_task import ConnectorTask, redactor_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import Context

    from airflow_connect.runtime.spec import RunSpec


class ReplayOperator(ConnectorOperator):
    """Copies a range of a sink's topics again, exactly once, without touching the connector's own offsets.

    The replay runs as a connector of its own name with its own group and journal. Its first run turns the range into
    offsets and stores them in Kafka. A retry, a cleared task or another task with the same `replay_id` continues there,
    and copies nothing once the range is copied.

    Args:
        start: where to begin, inclusive: an offset, a time in ISO 8601 (the first record at or after it), `earliest` or
            `latest`, for all partitions, or `{"topic-0": position}` for some; the others are not replayed. Templated.
        until: where to end, exclusive, in the same forms. None (or an empty text), and a partition that it does not
            name: the committed offset of the connector, so only what it has copied is copied again. Templated.
        into: changes of the connector's configuration, such as `{"topics.dir": "replayed"}`. They must lead to another
            place unless `allow_same_place`. Templated.
        allow_same_place: write where the connector writes. An object that exists with the same name and the same bytes
            stays and counts as written. One with other bytes is never replaced: the task fails with
            `publish.conflict`. Objects with other names hold the same records a second time, so remove those of the
            range first. The range may not go beyond what the connector has copied.
        replay_id: last part of the name `<connector>-replay-<replay_id>`. None (or an empty text): one per DAG run and
            task. Templated.
        kwargs: as for `ConnectorOperator`; `add_assets` is False by default.

    Returns (XCom):
        As `ConnectorOperator`; `connector` is the name of the replay.

    Raises (when it runs):
        AirflowFailException: as `ConnectorOperator`; also a range that is not in the log, a replay that has begun with
            another range, and one that would write where the connector does.
    """

    template_fields: Sequence[str] = (*ConnectorOperator.template_fields, "start", "until", "into", "replay_id")
    template_fields_renderers: ClassVar[dict[str, str]] = {**ConnectorTask.template_fields_renderers, "into": "json"}
    configuration_fields: ClassVar[tuple[str, ...]] = (*ConnectorOperator.configuration_fields, "into")

    def __init__(
        self,
        *,
        start: str | int | datetime | Mapping[str, Any],
        until: str | int | datetime | Mapping[str, Any] | None = None,
        into: Mapping[str, Any] | None = None,
        allow_same_place: bool = False,
        replay_id: str | None = None,
        add_assets: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments."""
        super().__init__(add_assets=add_assets, **kwargs)
        self.start = start
        self.until = until
        self.into = into
        self.allow_same_place = allow_same_place
        self.replay_id = replay_id

    def _spec(self, context: Context) -> RunSpec:
        from airflow_connect.runtime.driver.offsets.replaying import Replay, replay_spec

        spec = super()._spec(context)
        # A template renders None as text.
        replay_id = _id_of(context) if self.replay_id in (None, "", "None") else self.replay_id
        name = f"{spec.connector.get('name')}-replay-{replay_id}"
        until = None if self.until in ("", "None") else self.until
        wanted = Replay(name, self.start, until, self.into or {}, allow_same_place=self.allow_same_place)
        return replay_spec(spec, wanted)


def _id_of(context: Context) -> str:
    """The same for every attempt of a task in a DAG run."""
    instance = context["ti"]
    parts = (instance.dag_id, instance.run_id, instance.task_id, str(instance.map_index))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


class ReplayDeadLettersOperator(ConnectorTask):
    """Writes the dead letters of a sink back to the topics that they came from, each one once.

    What was replayed is recorded in the same transactions, in the group `connect-<name>-dlq-replay` and in the runs
    topic. So a retry, or the next DAG run, replays only letters that no earlier one did. A replay that runs twice at
    once is fenced.

    Args:
        to: topic for all letters; "": the topic that each one came from. Templated.
        stage: only letters of this stage of Kafka Connect, such as VALUE_CONVERTER. Templated.
        error: only letters whose exception's class or message contains this. Templated.
        since: only letters with this timestamp or a later one, ISO 8601: that of the record that failed, or, if
            the queue did not accept it, that of the letter. Templated.
        dry_run: only return what would be replayed.
        kwargs: as for `SetOffsetsOperator`.

    Returns (XCom):
        `queue`, `group`, `replayed` (how many), `topics`, `reasons`, `repeated`, `others`, `passed_over`, `notes`.

    Raises (when it runs):
        AirflowFailException: there is no queue, a letter does not tell where it came from, a newer replay took over.
        UnavailableError: Kafka does not answer; `retries` apply. What was replayed before is recorded.
    """

    template_fields: Sequence[str] = (*ConnectorTask.template_fields, "to", "stage", "error", "since")

    def __init__(
        self,
        *,
        to: str = "",
        stage: str = "",
        error: str = "",
        since: str = "",
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.to = to
        self.stage = stage
        self.error = error
        self.since = since
        self.only_shows = dry_run

    def execute(self, context: Context) -> dict[str, Any]:
        """Replay them in this process; no Spark is started."""
        with self.failing_for_airflow():
            spec = self.arguments().run_spec()
        redactor_of(spec)
        with self.failing_for_airflow(spec):
            told = self._replay(spec)
        self.log.info("%s of %s %s.", plural(told["replayed"], "letter"), told["queue"], self._what)
        return told

    @property
    def _what(self) -> str:
        return "would be replayed" if self.only_shows else "replayed"

    def _replay(self, spec: RunSpec) -> dict[str, Any]:
        from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
        from airflow_connect.errors import ConfigError
        from airflow_connect.kafka.reading.dead_letters import LetterFilter
        from airflow_connect.runtime.driver.dead_letters.replay import ReplayRequest, replay
        from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

        try:
            since_ms = parse_timestamp_ms(self.since) if self.since else None
        except ValueError as error:
            raise ConfigError(f"since is {self.since!r}. {error}.", config_path="since") from error
        chosen = LetterFilter(stage=self.stage, error=self.error, since_ms=since_ms)
        request = ReplayRequest(chosen, self.to, self.only_shows)
        configuration = SinkConfiguration.from_spec(spec)
        with configuration.references.hiding_errors():
            return replay(configuration, request).to_json()
