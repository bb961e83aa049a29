"""`KafkaConnectOperator`: one action on a connector of an existing Kafka Connect cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_connect.airflow.connections.config_urls import read_connector
from airflow_connect.airflow.connections.official import DEFAULT_KAFKA_CONN_ID
from airflow_connect.airflow.connector_arguments import as_path
from airflow_connect.airflow.outcome import error_of
from airflow_connect.airflow.rendering import ConfigurationTemplates
from airflow_connect.errors import ConfigError, ConnectError, UnavailableError
from airflow_connect.hooks.connect_cluster_watch import Goal, Watch, cluster_sink
from airflow_connect.hooks.kafka_connect import KafkaConnectHook
from airflow_connect.retrying import AtDeadline, Backoff, Retry
from airflow_connect.runtime.config_files import unwrap_connector

if TYPE_CHECKING:
    from airflow.sdk import Context

Action = Literal["apply", "pause", "resume", "stop", "restart", "delete", "alter_offsets", "reset_offsets", "wait"]
_STATE_AFTER: Mapping[str, str] = {
    "apply": "RUNNING",
    "resume": "RUNNING",
    "restart": "RUNNING",
    "wait": "RUNNING",
    "pause": "PAUSED",
    "stop": "STOPPED",
}


class KafkaConnectOperator(ConfigurationTemplates, BaseOperator):
    """Does one thing with a connector of a Kafka Connect cluster through its REST API, and waits for its effect.

    Every action may be repeated: a configuration that the connector has already is not written again, and deleting
    a connector that does not exist succeeds. Requests that the cluster refuses while it rebalances are repeated for a
    minute.

    Args:
        connector: name of the connector. Templated.
        action: `apply` creates or updates it, `wait` only waits; `restart` restarts what has failed. Offsets can be
            changed while it is stopped only. Templated.
        config: configuration for `apply`, as for Kafka Connect. Templated.
        config_file: path of a properties or JSON file with it, instead of `config`. Templated.
        offsets: for `alter_offsets`: `[{"partition": {...}, "offset": {...}}]`; an offset of None resets it. Templated.
        wait: whether to wait until the connector and its tasks are in the state that follows from the action:
            `RUNNING`, `PAUSED` or `STOPPED`.
        until_caught_up: also wait until a sink has committed everything that its topics held when the task began.
        timeout: how long to wait.
        poll_interval: seconds between two looks.
        kafka_connect_conn_id: connection of type `kafka_connect`.
        kafka_conn_id: connection of type `kafka`, for `until_caught_up`. Its `isolation.level`, if any, must be that
            of the cluster's consumers; Kafka Connect's default is `read_uncommitted`.
        deferrable: wait in the triggerer, without a worker slot.
        kwargs: as for every operator.

    Returns (XCom):
        `connector`, `action`, `result` (`created`, `updated`, `unchanged`, `deleted`, `absent`, or the cluster's
        message), and `seen`, a sentence about the state.

    Raises (when it runs):
        AirflowFailException: the cluster refused the request, or the arguments are wrong.
        ConnectError: the cluster did not answer, the connector failed, or the time is over; `retries` apply.
    """

    configuration_fields: ClassVar[tuple[str, ...]] = ("config",)
    template_fields: Sequence[str] = ("connector", "action", "config", "config_file", "offsets")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json", "offsets": "json"}
    ui_color = "#dff3ee"

    def __init__(  # noqa: PLR0913 (an operator's arguments are keywords, each with a default)
        self,
        *,
        connector: str,
        action: Action = "apply",
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        offsets: Sequence[Mapping[str, Any]] | None = None,
        wait: bool = True,
        until_caught_up: bool = False,
        timeout: timedelta = timedelta(minutes=30),
        poll_interval: float = 5.0,
        kafka_connect_conn_id: str = KafkaConnectHook.default_conn_name,
        kafka_conn_id: str = DEFAULT_KAFKA_CONN_ID,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        """Keep the arguments; nothing is read."""
        super().__init__(**kwargs)
        self.connector = connector
        self.action = action
        self.config = config
        self.config_file = as_path(config_file)
        self.offsets = offsets
        self.wait = wait
        self.until_caught_up = until_caught_up
        self.timeout = timeout
        self.poll_interval = poll_interval
        self.kafka_connect_conn_id = kafka_connect_conn_id
        self.kafka_conn_id = kafka_conn_id
        self.deferrable = deferrable

    @cached_property
    def hook(self) -> KafkaConnectHook:
        """The hook of the connection."""
        return KafkaConnectHook(self.kafka_connect_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:
        """Act, then wait here or in the triggerer."""
        try:
            self._check()
            result = self._act()
            self.log.info("%s of connector %s: %s.", self.action, self.connector, result)
            goal = self._goal()
        except ConnectError as error:
            raise _for_airflow(error) from error
        if goal is None:
            return self._summary(result, "")
        if self.deferrable:
            self._defer(goal, result)
        return self._summary(result, self._poll(goal))

    def execute_complete(self, context: Context, event: dict[str, Any], result: str = "") -> dict[str, Any]:
        """Continue after the trigger; `result` is of a task that an earlier release has deferred."""
        if "error" in event:
            raise _for_airflow(error_of(event["error"]))
        self.log.info("%s", event["seen"])
        return self._summary(event.get("result") or result, event["seen"])

    def _check(self) -> None:
        """Refuse arguments that do not belong to the action.

        Raises:
            ConfigError: names the argument.
        """
        if self.action not in get_args(Action):
            raise ConfigError(
                f"Task {self.task_id!r} has the action {self.action!r}.",
                config_path="action",
                suggestion=f"Use one of {', '.join(get_args(Action))}.",
            )
        given = sum(value is not None for value in (self.config, self.config_file))
        if given != (1 if self.action == "apply" else 0):
            raise ConfigError(
                f"Task {self.task_id!r} has {given or 'neither'} of config and config_file for action {self.action!r}.",
                config_path="config",
                suggestion="Give one of them for 'apply', and none for any other action.",
            )
        if (self.offsets is not None) != (self.action == "alter_offsets"):
            raise ConfigError(
                f"Task {self.task_id!r} has {'no ' if self.offsets is None else ''}offsets for action {self.action!r}.",
                config_path="offsets",
                suggestion="Give them for 'alter_offsets' only.",
            )

    def _act(self) -> str:
        name, hook = self.connector, self.hook
        if self.action == "apply":
            return hook.apply(name, self._config())
        if self.action == "delete":
            return "deleted" if hook.delete(name) else "absent"
        if self.action == "alter_offsets":
            return hook.alter_offsets(name, self.offsets or ())
        if self.action == "reset_offsets":
            return hook.reset_offsets(name)
        if self.action != "wait":
            getattr(hook, self.action)(name)
        return "waiting" if self.action == "wait" else "requested"

    def _config(self) -> dict[str, Any]:
        if self.config_file is not None:
            return read_connector(self.config_file)
        return unwrap_connector(self.config or {}, f"the config of task {self.task_id!r}")

    def _goal(self) -> Goal | None:
        """What to wait for; the ends of the topics are frozen now."""
        state = _STATE_AFTER.get(self.action)
        if state is None or not (self.wait or self.until_caught_up):
            return None
        ends = {}
        if self.until_caught_up:
            ends = cluster_sink(self.hook.rest, self.connector, self.kafka_conn_id).ends()
        return Goal(self.connector, state, ends, self.kafka_connect_conn_id, self.kafka_conn_id)

    def _poll(self, goal: Goal) -> str:
        """Look until the goal is reached; returns what was seen last."""
        watch, last = Watch(goal), ""
        every = Backoff(self.poll_interval, longest_s=self.poll_interval)
        tries = Retry(every, within_s=self.timeout.total_seconds(), at_deadline=AtDeadline.CUT)
        while True:
            try:
                is_reached, seen = watch.look()
            except ConnectError as error:
                raise _for_airflow(error) from error
            if seen != last:
                self.log.info("%s", seen)
                last = seen
            if is_reached:
                return seen
            if not tries.pause():
                raise UnavailableError(f"The time is over after {self.timeout}. {seen}", code="kafka_connect.timeout")

    def _defer(self, goal: Goal, result: str) -> None:
        from airflow_connect.triggers.kafka_connect import KafkaConnectTrigger

        self.defer(
            trigger=KafkaConnectTrigger(goal.to_json(), self.poll_interval, result),
            method_name="execute_complete",
            timeout=self.timeout,
        )

    def _summary(self, result: str, seen: str) -> dict[str, Any]:
        return {"connector": self.connector, "action": self.action, "result": result, "seen": seen}


def _for_airflow(error: ConnectError) -> Exception:
    """The error itself if another attempt may help, else AirflowFailException."""
    return error if error.retriable else AirflowFailException(f"{error.code}: {error}")
