"""Keys of the JDBC sink: Confluent's defaults, checks and messages."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.connectors.jdbc.sink.connector import JdbcSinkConnector
from airflow_connect.connectors.jdbc.sink.fields import fields_of
from airflow_connect.errors import ConfigError, SchemaError

BASE = {"name": "c", "connector.class": "JdbcSink", "topics": "t", "connection.url": "jdbc:sqlite:/data/x.sqlite"}
DEFAULTS = {
    "insert.mode": "insert", "pk.mode": "none", "pk.fields": [], "auto.create": False, "auto.evolve": False,
    "delete.enabled": False, "table.name.format": "${topic}", "batch.size": 3000, "max.retries": 10,
    "retry.backoff.ms": 3000, "fields.whitelist": [], "replace.null.with.default": True,
    "string.output.value.column.name": "record_value", "db.timezone": "UTC", "date.timezone": "DB_TIMEZONE",
    "timestamp.precision.mode": "microseconds", "timestamp.fields.list": [], "quote.sql.identifiers": "ALWAYS",
    "table.types": ["TABLE"], "mssql.use.merge.holdlock": True, "trim.sensitive.log": False, "dialect.name": "",
    "date.calendar.system": "LEGACY", "connection.attempts": 3, "connection.backoff.ms": 10000,
}  # fmt: skip


@pytest.mark.parametrize("name", ["io.confluent.connect.jdbc.JdbcSinkConnector", "JdbcSinkConnector", "JdbcSink"])
def test_class_and_aliases_are_found(name):
    assert resolve(PluginKind.CONNECTOR, name).path.endswith("jdbc.sink.connector:JdbcSinkConnector")


def test_defaults_are_confluents():
    parsed = JdbcSinkConfig.config_def().parse(BASE)
    found = {name: parsed[name] for name in DEFAULTS}
    assert {k: v.upper() if k == "quote.sql.identifiers" else v for k, v in found.items()} == DEFAULTS


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"delete.enabled": "true"}, "delete.enabled", "Primary key mode must be 'record_key' when delete support is"),
        ({"insert.mode": "upsert"}, "pk.mode", "insert.mode=upsert requires a primary key"),
        ({"insert.mode": "update"}, "pk.mode", "insert.mode=update requires a primary key"),
        ({"insert.mode": "merge"}, "insert.mode", "Invalid value merge for configuration insert.mode"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields", "must name three columns"),
        ({"table.name.format": "a_${date}"}, "table.name.format", "Only ${topic} is replaced"),
        ({"table.name.format": " "}, "table.name.format", "cannot be empty"),
        ({"table.types": "TABLE,SEQUENCE"}, "table.types", "It must name some of TABLE"),
        ({"batch.size": "-1"}, "batch.size", "Value must be at least 0"),
        ({"connection.url": "jdbc:nosuch://x"}, "connection.url", "nosuch"),
        ({"dialect.name": "Nope"}, "dialect.name", "Nope"),
    ],
)
def test_wrong_value_is_an_error_of_its_key(config, key, message):
    with pytest.raises(ConfigError) as refused:
        JdbcSinkConnector().check_config({**BASE, **config})
    assert message in refused.value.message
    assert key in refused.value.message or refused.value.config_path == key


def test_modes_are_read_whatever_their_case():
    config = JdbcSinkConfig.from_config({**BASE, "insert.mode": "UPSERT", "pk.mode": "Record_Value"})
    assert (config.insert_mode, config.mapping.pk_mode) == ("upsert", "record_value")


def test_secret_is_in_no_representation():
    config = JdbcSinkConfig.from_config({**BASE, "connection.password": "hush1"})
    assert "hush1" not in repr(config)


def test_primary_key_of_a_primitive_needs_one_column():
    for names in ("", "a,b"):
        config = JdbcSinkConfig.from_config({**BASE, "pk.mode": "record_key", "pk.fields": names})
        with pytest.raises(SchemaError, match="Need exactly one PK column defined since the key schema for records"):
            fields_of("t", config.mapping, s.INT64, s.struct(("x", s.INT32)))


def test_fields_of_a_struct_key_come_first_and_the_whitelist_holds_for_the_others():
    config = JdbcSinkConfig.from_config({**BASE, "pk.mode": "record_key", "fields.whitelist": "b"})
    value = s.struct(("a", s.INT32), ("b", s.INT32), ("id", s.INT64))
    found = fields_of("t", config.mapping, s.struct(("id", s.INT64)), value)
    assert [(f.name, f.is_key) for f in found] == [("id", True), ("b", False)]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (
            "record_key",
            "PK mode for table 't' is record_key with configured PK fields .no., but record key schema does",
        ),
        ("record_value", "but record value schema does not contain field: no"),
    ],
)
def test_primary_key_that_is_not_in_the_schema_is_refused_with_confluents_words(mode, message):
    config = JdbcSinkConfig.from_config({**BASE, "pk.mode": mode, "pk.fields": "no"})
    schema = s.struct(("id", s.INT64))
    with pytest.raises(SchemaError, match=message):
        fields_of("t", config.mapping, schema, schema)
