"""Dates of Connect are days, which the server's type date takes for milliseconds: the report names them."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, Type
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.values.columns import to_columns

pytestmark = pytest.mark.integration


def put_all(runner: SinkTaskRunner, made: list[SinkRecord], *, columnar: bool) -> None:
    """Write records, and end the task."""
    if columnar:
        batch = to_columns(made)
        assert runner.put_columns([batch], batch.offsets)
    else:
        for one in made:
            runner.put(one)
    runner.complete()
    runner.close()


INNER = s.struct(("d", s.date()))
LIST = Schema(Type.ARRAY, value_schema=s.date())
OBJECT, PAIRS = s.map_of(s.STRING, INNER), s.map_of(s.INT32, s.date())
SCHEMA = s.struct(("n", s.INT64), ("day", s.date()), ("in", INNER), ("days", LIST), ("at", s.timestamp()))
VALUE = {"n": 1, "day": 18262, "in": {"d": 18262}, "days": [18262], "at": 1_577_836_800_000}


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("mapping", "ignores", "named"),
    [
        (None, "false", "day, in.d, days"),
        (None, "true", ""),  # The server derives whole numbers.
        ({"day": {"type": "date"}, "in": {"properties": {"d": {"type": "integer"}}}}, "true", "day"),
        ({"day": {"type": "integer"}, "in": {"properties": {"d": {"type": "date_nanos"}}}}, "false", "in.d"),
    ],
)
def test_days_that_count_as_milliseconds_are_named(opensearch, unique_name, mapping, ignores, named, columnar):
    if mapping is not None:
        assert opensearch.request("PUT", f"/{unique_name}", {"mappings": {"properties": mapping}})[0] == 200
    task = SearchTask(opensearch.url, unique_name, key_ignore="true", schema_ignore=ignores)
    made = [record(n, VALUE, schema=SCHEMA, topic=unique_name) for n in range(3)]
    runner = task.open()
    put_all(runner, made, columnar=columnar)
    assert {found["day"] for found in documents(opensearch, unique_name).values()} == {18262}
    notes = [note for note in runner.notes.sentences if "takes them for milliseconds" in note]
    assert len(notes) == (1 if named else 0)
    assert all(note.endswith(f"Fields: {named}.") for note in notes)


@pytest.mark.parametrize(
    ("compacts", "ignores", "mapping", "named"),
    [
        ("true", "false", None, "p.value"),  # An object's members are numbers for the server, unless a mapping says so.
        ("true", "false", {"o": {"properties": {"a": {"properties": {"d": {"type": "date"}}}}}}, "o.*.d"),
        ("false", "false", None, "o.value.d, p.value"),
        ("false", "true", {"o": {"properties": {"a": {"properties": {"d": {"type": "date"}}}}}}, "o.*.d"),
        ("true", "true", {"p": {"type": "date"}}, "p"),
    ],
)
def test_days_in_maps_are_named(opensearch, unique_name, compacts, ignores, mapping, named):
    if mapping is not None:
        assert opensearch.request("PUT", f"/{unique_name}", {"mappings": {"properties": mapping}})[0] == 200
    schema = s.struct(("n", s.INT64), ("o", OBJECT), ("p", PAIRS))
    task = SearchTask(
        opensearch.url, unique_name, key_ignore="true", schema_ignore=ignores, compact_map_entries=compacts
    )
    runner = task.open()
    runner.put(record(0, {"n": 1, "o": {"a": {"d": 18262}}, "p": {7: 18262}}, schema=schema, topic=unique_name))
    runner.complete()
    runner.close()
    assert len(documents(opensearch, unique_name)) == 1
    notes = [note for note in runner.notes.sentences if "takes them for milliseconds" in note]
    assert [note.partition(" Fields: ")[2] for note in notes] == [f"{named}."]


def test_days_and_times_that_become_timestamps_of_a_data_stream_are_named(opensearch, unique_name):
    stream = f"logs-days-{unique_name}"
    template = {"index_patterns": [stream], "data_stream": {}, "template": {"settings": {"number_of_replicas": 0}}}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {"data_stream_type": "logs", "data_stream_dataset": "days", "key_ignore": "true"}
    schema = s.struct(*((field.name, field.schema) for field in SCHEMA.fields), ("clock", s.time()))
    expected = {"none,day": "names a date of", "at": "", "at,day": "", "clock": "names a time of day of"}
    for offset, (fields, named) in enumerate(expected.items()):
        task = SearchTask(opensearch.url, unique_name, **config, data_stream_timestamp_field=fields)
        runner = task.open()
        runner.put(record(offset, {**VALUE, "clock": 36_000_000}, schema=schema, topic=unique_name))
        runner.complete()
        runner.close()
        notes = [note for note in runner.notes.sentences if note.startswith("data.stream.timestamp.field names")]
        assert [named in note and f"({fields.removeprefix('none,')})" in note for note in notes] == [True] * bool(named)
    found = documents(opensearch, stream)
    assert [found[f"{unique_name}+0+{offset}"]["@timestamp"] for offset in (0, 3)] == ["18262", "36000000"]


def debezium(name: str) -> Schema:
    return Schema(Type.INT64, name=f"io.debezium.time.{name}")


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_numbers_of_debezium_that_count_as_milliseconds_are_named(opensearch, unique_name, columnar):
    """A MicroTimestamp of 2020 was found in the year 52671, and no report said so."""
    units = {
        "a": ("MicroTimestamp", "microseconds since 1970"),
        "b": ("Date", "days since 1970"),
        "c": ("Timestamp", ""),
    }
    schema = s.struct(
        *((field, debezium(kind)) for field, (kind, _) in units.items()), ("d", debezium("NanoTimestamp"))
    )
    mapping = {"properties": {field: {"type": "date"} for field in units} | {"d": {"type": "long"}}}
    assert opensearch.request("PUT", f"/{unique_name}", {"mappings": mapping})[0] == 200
    runner = SearchTask(opensearch.url, unique_name, key_ignore="true").open()
    value = {"a": 1_600_000_000_000_000, "b": 18500, "c": 1_600_000_000_000, "d": 1_600_000_000_000_000_000}
    made = [record(n, value, schema=schema, topic=unique_name) for n in range(3)]
    put_all(runner, made, columnar=columnar)
    (note,) = runner.notes.sentences
    assert note.startswith(
        f"{unique_name} has the type date for dates and times of Debezium, of which documents have the"
    )
    assert "the microseconds since 1970 or days since 1970, as" in note and note.endswith("Fields: a, b.")
    assert len(documents(opensearch, unique_name)) == 3


def test_number_of_debezium_that_becomes_the_timestamp_of_a_data_stream_is_named(opensearch, unique_name):
    stream = f"logs-days-{unique_name}"
    template = {"index_patterns": [stream], "data_stream": {}, "template": {"settings": {"number_of_replicas": 0}}}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {"data_stream_type": "logs", "data_stream_dataset": "days", "key_ignore": "true"}
    runner = SearchTask(opensearch.url, unique_name, **config, data_stream_timestamp_field="at").open()
    schema = s.struct(("at", debezium("MicroTimestamp")))
    runner.put(record(0, {"at": 1_600_000_000_000_000}, schema=schema, topic=unique_name))
    runner.complete()
    runner.close()
    assert any("names a number of Debezium (at), of which documents" in note for note in runner.notes.sentences)


def test_seconds_that_become_the_timestamp_of_a_data_stream_are_counted(opensearch, unique_name):
    """Without a schema, nothing names the unit: the documents are in January 1970."""
    stream = f"logs-days-{unique_name}"
    template = {"index_patterns": [stream], "data_stream": {}, "template": {"settings": {"number_of_replicas": 0}}}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {"data_stream_type": "logs", "data_stream_dataset": "days", "key_ignore": "true"}
    runner = SearchTask(opensearch.url, unique_name, **config, data_stream_timestamp_field="at").open()
    for offset, at in enumerate((1_600_000_000_000, 1_600_000_000, 1_600_000_000_001, 1_600_000_000, 0)):
        runner.put(record(offset, {"at": at}, topic=unique_name))
    runner.complete()
    runner.close()
    (note,) = [note for note in runner.notes.sentences if "Is it a number of seconds?" in note]
    assert note.startswith("2 records have a number in a field of data.stream.timestamp.field that is before 1973")
    assert note.endswith(f"The first is {unique_name}-0@1.")
