"""Debezium's placeholder for a value that it does not have is counted where a document replaces another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.columns import ValueColumns
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.values.columns import to_columns

pytestmark = pytest.mark.integration

PLACEHOLDER = "__debezium_unavailable_value"
SCHEMA = s.struct(("text", s.STRING))


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("ignores_key", ["true", "false"])
def test_documents_without_a_value_of_debezium_are_counted(opensearch, unique_name, columnar, ignores_key):
    texts = ["a", PLACEHOLDER, f'"{PLACEHOLDER}"', PLACEHOLDER]
    made = [record(n, {"text": text}, key=f"k{n}", key_schema=s.STRING, schema=SCHEMA, topic=unique_name)
            for n, text in enumerate(texts)]  # fmt: skip
    runner = SearchTask(opensearch.url, unique_name, key_ignore=ignores_key).open()
    if columnar:
        batch = to_columns(made)
        batch = batch.changed(key=ValueColumns(s.STRING, pa.array([one.key for one in made], pa.string())))
        assert runner.put_columns([batch], batch.offsets)
    else:
        for one in made:
            runner.put(one)
    runner.complete()
    runner.close()
    notes = [note for note in runner.notes.sentences if PLACEHOLDER in note]
    assert len(documents(opensearch, unique_name)) == len(texts)
    if ignores_key == "true":  # Each record is a document of its own.
        assert notes == []
    else:
        (note,) = notes
        assert f"was written to {unique_name}: documents (2). Debezium" in note
