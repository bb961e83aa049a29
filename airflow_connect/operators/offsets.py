"""Set or reset the offsets of a connector as an Airflow task, fenced as a run is (KIP-875)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.airflow.rendering import ensure_rendered
from airflow_connect.counting import counted
from airflow_connect.errors import ConfigError
from airflow_connect.operators.connector_task import ConnectorTask, redactor_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_connect.runtime.driver.offsets.altered import AlteredOffsets
    from airflow_connect.runtime.spec import RunSpec


class _AlteringTask(ConnectorTask):
    """Alters offsets in this process; no Spark is started."""

    def alter(self, context: Context, change: Callable[[RunSpec], AlteredOffsets]) -> dict[str, Any]:
        """Return what was changed, for XCom."""
        with self.failing_for_airflow():
            spec = self.arguments().run_spec()
        redactor_of(spec)
        with self.failing_for_airflow(spec):
            altered = change(spec).to_json()
        self.log.info("Connector %s: %s altered.", altered["connector"], counted(altered["altered"], "offset"))
        self.log.info("Before: %s", altered["before"])
        self.log.info("After: %s", altered["after"])
        return altered


class SetOffsetsOperator(_AlteringTask):
    """Sets offsets of a connector: the next run starts there.

    An alteration takes part in the fencing of runs. A run that copies at the same time fails as fenced and commits
    nothing. While a run publishes, and while a live Kafka Connect worker runs the connector, it is refused.

    Args:
        offsets: of a sink: one position for all partitions (`earliest`, `latest`, a time in ISO 8601, an offset), or
            `{"topic-0": position}`. A time is the first record at or after it. Of a source, and of a sink if you like:
            the list of Kafka Connect's REST API, `[{"partition": {...}, "offset": {...}}]`. None deletes an offset.
            Partitions that are not named keep their offsets. Templated; a template must not become None.
        kwargs: `config` or `config_file`, `worker`, `kafka_conn_id`, `aws_conn_id`, `worker_conn_id` and `db_conn_id`
            as for `ConnectorOperator`, and what every operator has.

    Returns (XCom):
        `connector`, `altered` (how many offsets are other ones now), `before` and `after`.

    Raises (when it runs):
        AirflowFailException: wrong configuration, a partition that does not exist, an offset outside the log, a live
            worker, or a run that began during the alteration.
        RetriableError: a run has not finished publishing; `retries` apply.
        UnavailableError: Kafka does not answer; `retries` apply.
    """

    template_fields: Sequence[str] = (*ConnectorTask.template_fields, "offsets")
    template_fields_renderers: ClassVar[dict[str, str]] = {**ConnectorTask.template_fields_renderers, "offsets": "json"}

    def __init__(self, *, offsets: str | int | Mapping[str, Any] | Sequence[Mapping[str, Any]], **kwargs: Any) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.offsets = offsets
        self._written = offsets

    def execute(self, context: Context) -> dict[str, Any]:
        """Alter the offsets."""
        from airflow_connect.runtime.driver.entry import set_offsets

        with self.failing_for_airflow():
            ensure_rendered(self._written, self.offsets, "offsets")
            if self.offsets is None:
                raise ConfigError(
                    f"Task {self.task_id!r} has no offsets.",
                    config_path="offsets",
                    suggestion="Give them. To delete all offsets of the connector, use ResetOffsetsOperator.",
                )
        return self.alter(context, lambda spec: set_offsets(spec, self.offsets))


class ResetOffsetsOperator(_AlteringTask):
    """Deletes offsets of a connector: the next run starts as if the connector had never run.

    A sink then starts at `consumer.override.auto.offset.reset`, and the HDFS sink where its files end. Fencing and
    errors are those of `SetOffsetsOperator`.

    Args:
        partitions: which: `["topic-0", ...]` of a sink, `[{...}, ...]` (source partitions) of a source; None: all.
            Templated; a template must not become None.
        kwargs: as for `SetOffsetsOperator`.

    Returns (XCom):
        As `SetOffsetsOperator`.
    """

    template_fields: Sequence[str] = (*ConnectorTask.template_fields, "partitions")

    def __init__(self, *, partitions: Sequence[Any] | None = None, **kwargs: Any) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.partitions = partitions
        self._written = partitions

    def execute(self, context: Context) -> dict[str, Any]:
        """Delete the offsets."""
        from airflow_connect.runtime.driver.entry import reset_offsets

        with self.failing_for_airflow():
            ensure_rendered(self._written, self.partitions, "partitions")
            if isinstance(self.partitions, (str, Mapping)):
                raise ConfigError(
                    f"The partitions of task {self.task_id!r} are {self.partitions!r}, which is not a list.",
                    config_path="partitions",
                    suggestion='Write ["topic-0"], or use render_template_as_native_obj=True for a template that'
                    " gives a list.",
                )
        return self.alter(context, lambda spec: reset_offsets(spec, self.partitions))
