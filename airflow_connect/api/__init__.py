"""Layer 3: the contracts and the plain data of the connector model. No I/O, standard library only.

Everything that a plugin author imports is in this package, under the names below: `from airflow_connect.api import
SinkConnector, SinkTask, ConfigDef`. Names are loaded on first use. Nothing here imports Airflow, Spark, Kafka, boto3 or
pyarrow, so that planning an empty run costs milliseconds.

What `__all__` lists is the public API: it keeps its meaning within a major version. docs/plugin-api.md describes it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_connect.api.columns import (
        ColumnarSinkConnector,
        NullDroppingSinkTask,
        NullValues,
        RecordColumns,
        ValueColumns,
    )
    from airflow_connect.api.config.config_def import (
        REQUIRED,
        ConfigDef,
        ConfigKey,
        ConfigValue,
        Importance,
        KeyFamily,
        Problem,
        Recommender,
        Width,
    )
    from airflow_connect.api.config.plugins import PluginKind
    from airflow_connect.api.config.validators import (
        CaseInsensitiveValidString,
        Composite,
        Lambda,
        ListSize,
        NonEmptyString,
        NonEmptyStringWithoutControlChars,
        NonNull,
        Range,
        Validator,
        ValidList,
        ValidString,
    )
    from airflow_connect.api.config.values import Password
    from airflow_connect.api.config.values import Type as ConfigType
    from airflow_connect.api.config_provider import ConfigProvider
    from airflow_connect.api.connector import Connector, ConnectorContext
    from airflow_connect.api.converter import ColumnarConverter, Converter, HeaderConverter, SchemaAndValue
    from airflow_connect.api.errant import ErrantRecordReporter
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.publishing import LeftoverPattern, Publisher
    from airflow_connect.api.record import ConnectRecord, Header, KafkaRecord, SinkRecord, SourceRecord
    from airflow_connect.api.schema import Field, Schema
    from airflow_connect.api.schema import Type as SchemaType
    from airflow_connect.api.schema import array as array_schema
    from airflow_connect.api.schema import date as date_schema
    from airflow_connect.api.schema import decimal as decimal_schema
    from airflow_connect.api.schema import map_of as map_schema
    from airflow_connect.api.schema import struct as struct_schema
    from airflow_connect.api.schema import time as time_schema
    from airflow_connect.api.schema import timestamp as timestamp_schema
    from airflow_connect.api.sink import (
        ColumnarSinkTask,
        Delivery,
        SinkConnector,
        SinkConnectorContext,
        SinkTask,
        SinkTaskContext,
        Splitting,
        StagingSinkConnector,
    )
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun, PlannedState, StateAfter
    from airflow_connect.api.source import (
        CheckingSourceTask,
        ColumnarSourceTask,
        ExactlyOnceSupport,
        JoiningSourceTask,
        OffsetReader,
        RecordMetadata,
        SourceColumns,
        SourceConnector,
        SourceConnectorContext,
        SourceTask,
        SourceTaskContext,
        TransactionContext,
    )
    from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
    from airflow_connect.api.transform import ColumnarPredicate, ColumnarTransformation, Predicate, Transformation
    from airflow_connect.documents.run import PartitionReport, PublishedRun
    from airflow_connect.documents.run_tables import TableCommit
    from airflow_connect.errors import (
        AccessError,
        ConfigError,
        ConnectError,
        DataError,
        OffsetError,
        PublishConflictError,
        RetriableError,
        SchemaError,
        StagedFileLostError,
        UnavailableError,
    )

_NAMES = {
    "api.columns": "ColumnarSinkConnector NullDroppingSinkTask NullValues RecordColumns ValueColumns",
    "api.config.config_def": "REQUIRED ConfigDef ConfigKey ConfigValue Importance KeyFamily Problem Recommender Width",
    "api.config_provider": "ConfigProvider",
    "api.config.validators": "CaseInsensitiveValidString Composite Lambda ListSize NonEmptyString"
    " NonEmptyStringWithoutControlChars NonNull Range ValidList ValidString Validator",
    "api.config.values": "Password ConfigType=Type",
    "api.connector": "Connector ConnectorContext",
    "api.converter": "ColumnarConverter Converter HeaderConverter SchemaAndValue",
    "api.errant": "ErrantRecordReporter",
    "errors": "AccessError ConfigError ConnectError DataError OffsetError PublishConflictError RetriableError"
    " SchemaError StagedFileLostError UnavailableError",
    "api.offsets": "OffsetRange TopicPartition",
    "api.config.plugins": "PluginKind",
    "documents.run": "PartitionReport PublishedRun",
    "documents.run_tables": "TableCommit",
    "api.publishing": "LeftoverPattern Publisher",
    "api.record": "ConnectRecord Header KafkaRecord SinkRecord SourceRecord",
    "api.schema": "Field Schema SchemaType=Type array_schema=array date_schema=date decimal_schema=decimal"
    " map_schema=map_of struct_schema=struct time_schema=time timestamp_schema=timestamp",
    "api.sink": "ColumnarSinkTask Delivery SinkConnector SinkConnectorContext SinkTask SinkTaskContext"
    " Splitting StagingSinkConnector",
    "api.sink_state": "CopiedRun PlannedRun PlannedState StateAfter",
    "api.source": "CheckingSourceTask ColumnarSourceTask ExactlyOnceSupport JoiningSourceTask OffsetReader"
    " RecordMetadata SourceColumns SourceConnector SourceConnectorContext SourceTask SourceTaskContext"
    " TransactionContext",
    "api.staging": "LeftOver Outcome StagedFile",
    "api.transform": "ColumnarPredicate ColumnarTransformation Predicate Transformation",
}
"""Module below `airflow_connect` to its public names; `A=B` is B of that module under the name A."""

_PLACES: dict[str, tuple[str, str]] = {
    public: (module, own or public)
    for module, names in _NAMES.items()
    for public, _, own in (name.partition("=") for name in names.split())
}

__all__ = [
    "REQUIRED",
    "AccessError",
    "CaseInsensitiveValidString",
    "CheckingSourceTask",
    "ColumnarConverter",
    "ColumnarPredicate",
    "ColumnarSinkConnector",
    "ColumnarSinkTask",
    "ColumnarSourceTask",
    "ColumnarTransformation",
    "Composite",
    "ConfigDef",
    "ConfigError",
    "ConfigKey",
    "ConfigProvider",
    "ConfigType",
    "ConfigValue",
    "ConnectError",
    "ConnectRecord",
    "Connector",
    "ConnectorContext",
    "Converter",
    "CopiedRun",
    "DataError",
    "Delivery",
    "ErrantRecordReporter",
    "ExactlyOnceSupport",
    "Field",
    "Header",
    "HeaderConverter",
    "Importance",
    "JoiningSourceTask",
    "KafkaRecord",
    "KeyFamily",
    "Lambda",
    "LeftOver",
    "LeftoverPattern",
    "ListSize",
    "NonEmptyString",
    "NonEmptyStringWithoutControlChars",
    "NonNull",
    "NullDroppingSinkTask",
    "NullValues",
    "OffsetError",
    "OffsetRange",
    "OffsetReader",
    "Outcome",
    "PartitionReport",
    "Password",
    "PlannedRun",
    "PlannedState",
    "PluginKind",
    "Predicate",
    "Problem",
    "PublishConflictError",
    "PublishedRun",
    "Publisher",
    "Range",
    "Recommender",
    "RecordColumns",
    "RecordMetadata",
    "RetriableError",
    "Schema",
    "SchemaAndValue",
    "SchemaError",
    "SchemaType",
    "SinkConnector",
    "SinkConnectorContext",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceColumns",
    "SourceConnector",
    "SourceConnectorContext",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "Splitting",
    "StagedFile",
    "StagedFileLostError",
    "StagingSinkConnector",
    "StateAfter",
    "TableCommit",
    "TopicPartition",
    "TransactionContext",
    "Transformation",
    "UnavailableError",
    "ValidList",
    "ValidString",
    "Validator",
    "ValueColumns",
    "Width",
    "array_schema",
    "date_schema",
    "decimal_schema",
    "map_schema",
    "struct_schema",
    "time_schema",
    "timestamp_schema",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _PLACES[name]
    found = globals()[name] = getattr(import_module(f"airflow_connect.{module}"), own)
    return found


def __dir__() -> list[str]:
    """Public names, for completion."""
    return sorted({*globals(), *__all__})
