"""The JSON of bodies and answers, for the description of the API. Source: the entities of Kafka Connect's REST API.

Answers are not passed through these models: they are made in these forms, and tests compare them with the description.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

State = Literal["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]
ConnectorType = Literal["source", "sink", "unknown"]
Plain = str | bool | int | float | None


class Answer(BaseModel):
    """An object that has these members and no others."""

    model_config = ConfigDict(extra="forbid")


class ErrorMessage(Answer):
    """The answer to every request that fails."""

    error_code: int = Field(description="The HTTP status code.")
    message: str


class Message(Answer):
    """What was done."""

    message: str


class ServerInfo(Answer):
    """This server."""

    version: str = Field(description="Of airflow-connect.")
    commit: str
    kafka_cluster_id: str


class RunNow(Answer):
    """A run that has not ended."""

    connector: str
    seconds: float


class WorkerStatus(Answer):
    """Whether requests can be handled; `runs` is there while something runs."""

    status: Literal["healthy", "starting", "unhealthy"]
    message: str
    runs: list[RunNow] | None = None


class TaskId(Answer):
    """A task of a connector."""

    connector: str
    task: int


class ConnectorInfo(Answer):
    """A connector. `config` is as it was sent; references to secrets are not resolved."""

    name: str
    config: dict[str, str | None]
    tasks: list[TaskId]
    type: ConnectorType


class ConnectorState(Answer):
    """The state of a connector itself."""

    state: State
    worker_id: str = Field(description="host:port of the worker.")
    trace: str | None = Field(None, description="Why it has failed; only if it has.")
    version: str | None = None


class TaskState(Answer):
    """The state of a task."""

    id: int
    state: State
    worker_id: str
    trace: str | None = None
    version: str | None = None


class ConnectorStateInfo(Answer):
    """The states of a connector and of its tasks."""

    name: str
    connector: ConnectorState
    tasks: list[TaskState]
    type: ConnectorType


class ExpandedConnector(Answer):
    """What `expand` has asked for."""

    status: ConnectorStateInfo | None = None
    info: ConnectorInfo | None = None


class TaskInfo(Answer):
    """A task and its configuration."""

    id: TaskId
    config: dict[str, str | None]


class ActiveTopics(Answer):
    """Topics that a connector has used."""

    topics: list[str]


class ConnectorOffset(Answer):
    """An offset. Of a sink, `partition` has `kafka_topic` and `kafka_partition`, and `offset` has `kafka_offset`."""

    partition: dict[str, Any]
    offset: dict[str, Any] | None = Field(description="null deletes the offset.")


class ConnectorOffsets(Answer):
    """Offsets of a connector."""

    offsets: list[ConnectorOffset]


class Configuration(RootModel[dict[str, Plain]]):
    """Configuration keys and their values."""


class CreateConnectorRequest(Answer):
    """A new connector."""

    name: str
    config: Configuration
    initial_state: Literal["RUNNING", "PAUSED", "STOPPED"] | None = None


class PluginInfo(BaseModel):
    """A plugin."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    class_name: str = Field(alias="class")
    type: Literal["source", "sink", "converter", "header_converter", "transformation", "predicate"]
    version: str | None = Field(default=None, description="Absent if a Java class does not tell it.")


class ConfigKeyInfo(Answer):
    """A configuration key."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str | None
    order_in_group: int
    width: str
    display_name: str
    dependents: list[str]
    order: int | None = None


class ConfigValueInfo(Answer):
    """The value of a configuration key, and what is wrong with it."""

    name: str
    value: str | None
    recommended_values: list[str]
    errors: list[str]
    visible: bool


class ConfigInfo(Answer):
    """A key and its value."""

    definition: ConfigKeyInfo | None
    value: ConfigValueInfo


class ConfigInfos(Answer):
    """The result of a validation."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]


class LoggerLevel(Answer):
    """The level of a logger."""

    level: str | None
    last_modified: int | None = Field(description="Milliseconds since 1970; null: not changed since the start.")


class Level(BaseModel):
    """A new level."""

    level: Literal["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"]
