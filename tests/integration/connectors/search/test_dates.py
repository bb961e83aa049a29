"""Dates of Connect are days, which the server's type date takes for milliseconds: the report names them."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.values.columns import to_columns

pytestmark = pytest.mark.integration

INNER = s.struct(("d", s.date()))
LIST = Schema(Type.ARRAY, value_schema=s.date())
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
    if columnar:
        batch = to_columns(made)
        assert runner.put_columns([batch], batch.offsets)
    else:
        for one in made:
            runner.put(one)
    runner.complete()
    runner.close()
    assert {found["day"] for found in documents(opensearch, unique_name).values()} == {18262}
    notes = [note for note in runner.notes.sentences if "takes them for milliseconds" in note]
    assert len(notes) == (1 if named else 0)
    assert all(note.endswith(f"Fields: {named}.") for note in notes)
