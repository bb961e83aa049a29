"""Fields that come after the mapping was made: the server chooses their types, and the report names them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import SearchError
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.values.columns import to_columns

pytestmark = pytest.mark.integration

FIRST = s.struct(("n", s.INT64), ("in", s.struct(("a", s.INT64))))
INNER = s.struct(("a", s.INT64), ("at", s.OPTIONAL_FLOAT64))
LATER = s.struct(
    ("n", s.INT64), ("in", INNER), ("at", s.timestamp()), ("price", s.decimal(2)), ("raw", s.BYTES), ("t", s.STRING)
)
VALUE = {"n": 1, "in": {"a": 1, "at": 1.5}, "at": 1_577_836_800_000, "price": Decimal("1.25"), "raw": b"a", "t": "x"}
NAMED = "in.at (double), at (date), price (double), raw (binary)"


def written(server, index, rows, *, columnar=False, **config):
    """The notes about types."""
    task = SearchTask(server.url, index, key_ignore="true", **{"schema_ignore": "false", **config})
    runner = task.open()
    for row in rows:
        if columnar:
            batch = to_columns([row])
            assert runner.put_columns([batch], batch.offsets)
        else:
            runner.put(row)
    runner.complete()
    runner.close()
    return [note for note in runner.notes.sentences if "server chooses the types" in note]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("runs", [1, 2])
def test_fields_of_a_later_schema_whose_types_the_server_chooses_are_named_once(
    opensearch, unique_name, runs, columnar
):
    """A timestamp that was added to the schema became a whole number for searches, without a word."""
    later = s.struct(*((f.name, f.schema) for f in LATER.fields if f.name != "price")) if columnar else LATER
    value = {name: one for name, one in VALUE.items() if name in later.fields_by_name}
    rows = [record(0, {"n": 1, "in": {"a": 1}}, schema=FIRST, topic=unique_name)]
    more = [record(n, value, schema=later, topic=unique_name) for n in (1, 2)]
    if runs == 2:
        assert written(opensearch, unique_name, rows, columnar=columnar) == []
        rows = []
    (note,) = written(opensearch, unique_name, [*rows, *more], columnar=columnar)
    assert note.endswith(f"Fields: {NAMED.replace('price (double), ', '') if columnar else NAMED}.")
    assert len(documents(opensearch, unique_name)) == 3
    shown = opensearch.request("GET", f"/{unique_name}/_mapping")[1][unique_name]["mappings"]["properties"]
    assert (shown["at"]["type"], shown["in"]["properties"]["at"]["type"]) == ("long", "float")
    assert written(opensearch, unique_name, more, columnar=columnar) == []  # Now they have types.


@pytest.mark.parametrize(
    ("mapping", "ignores"),
    [
        ({"properties": {"n": {"type": "long"}}}, "true"),
        ({"properties": {"n": {"type": "long"}}, "dynamic": "false"}, "false"),
        ({"dynamic_templates": [{"any": {"match": "at", "mapping": {"type": "date"}}}]}, "false"),
        (None, "false"),
    ],
    ids=["schema.ignore", "not dynamic", "templates", "created"],
)
def test_fields_whose_types_a_mapping_has_chosen_are_not_named(opensearch, unique_name, mapping, ignores):
    if mapping is not None:
        assert opensearch.request("PUT", f"/{unique_name}", {"mappings": mapping})[0] == 200
    row = record(0, VALUE, schema=LATER, topic=unique_name)
    assert written(opensearch, unique_name, [row], schema_ignore=ignores) == []


def test_record_after_one_whose_mapping_was_refused_is_refused_too(opensearch, unique_name):
    """The mapping of a schema counts as made only if it was made."""
    assert opensearch.request("PUT", f"/{unique_name}", {"settings": {"index.mapping.total_fields.limit": 1}})[0] == 200
    runner = SearchTask(opensearch.url, unique_name, key_ignore="true", schema_ignore="false").open()
    for _ in range(2):
        with pytest.raises(SearchError, match="has more fields than"):
            runner._task.put([record(0, VALUE, schema=LATER, topic=unique_name)])
    runner.abort()
