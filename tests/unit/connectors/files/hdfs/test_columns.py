"""Two speeds, one meaning, for the HDFS sink: its rotation, its names and the formats that only it has."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.files.shared.publishing.schemas_between_runs import OF_LAST_FILE
from airflow_connect.connectors.files.shared.value_schemas import schema_of_text
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages
from tests.unit.connectors.files.shared.staging import HDFS, NOW_MS, STRING, copy
from tests.unit.connectors.files.shared.test_column_configurations import (
    DIRECTORIES,
    REGISTERED,
    SCHEMALESS,
    VALUES,
    WITH_SCHEMA,
    _vectorizable,
    batches,
    chains,
)
from tests.unit.connectors.files.shared.test_columns import CONFIGS, ERRORS

SINK = {"connector.class": HDFS, "store.url": "hdfs://namenode:8020", "storage.class": "HdfsStorage"}
FORMATS = {
    name: {"format.class": f"io.confluent.connect.hdfs.{path}"}
    for name, path in {
        "json": "json.JsonFormat",
        "parquet": "parquet.ParquetFormat",
        "orc": "orc.OrcFormat",
        "text": "string.StringFormat",
        "avro": "avro.AvroFormat",
    }.items()
}
NO_UTF8 = st.just(b"\xff{")


@pytest.mark.parametrize("file_format", FORMATS)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_configuration_stages_the_same_files_on_both_paths(file_format: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(VALUES)))
    converter, values = VALUES[kind]
    layout = {**data.draw(CONFIGS), **data.draw(DIRECTORIES), **data.draw(ERRORS)}
    layout["behavior.on.null.values"] = data.draw(st.sampled_from(["fail", "ignore"]))
    layout.setdefault("timezone", "UTC")
    if kind.endswith("-evolving"):
        layout["schema.compatibility"] = data.draw(st.sampled_from(["NONE", "BACKWARD", "FORWARD", "FULL"]))
    config = {**converter, **layout, **data.draw(chains()), **FORMATS[file_format], **SINK}
    broken, registry = REGISTERED.get(kind.removesuffix("-evolving"), (NO_UTF8, nullcontext))
    records = data.draw(batches(values, broken, data.draw(st.sampled_from([5, 30, 10**6]))))
    flush_on_end = data.draw(st.booleans()) or config.get("files.per.partition") == "compact"
    smallest = data.draw(st.sampled_from([1, 4]))
    with avro_messages.known_schemas():
        before = data.draw(st.sampled_from(["null", *schemas_told()]))
    with registry(), patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", smallest):
        how: dict[str, Any] = {"flush_on_end": flush_on_end, "schema_before": before}
        reference, _ = copy(config, records, columnar=False, **how)
        columnar, _ = copy(config, records, columnar=True, **how)
    assert (columnar.error, columnar) == (reference.error, reference)


@cache
def schemas_told() -> list[str]:
    """What runs over messages of one version each say of the schema of their last file."""
    config = {**avro_messages.CONVERTER, **FORMATS["avro"], **SINK, **BACKWARD}
    runs = [copy(config, [[avro_record(0, number)]], columnar=False)[0] for number in (1, 2)]
    told = [run.reports[0].details[OF_LAST_FILE] for run in runs]
    assert [schema_of_text(text).version for text in told] == [1, 2]
    return told


def avro_record(offset: int, number: int) -> KafkaRecord:
    more = {"note": "noted"} if number == 2 else {}
    return KafkaRecord("t", 0, offset, None, avro_messages.message(number, {**ROW, **more}), NOW_MS)


ROW = {"id": 1, "name": None, "ok": True, "at": 0, "day": None, "ratio": 1.5, "small": 1, "price": None, "kind": "a",
       "inner": None}  # fmt: skip
BACKWARD = {"flush.size": "10", "schema.compatibility": "BACKWARD", "topics": "t"}


@pytest.mark.parametrize("columnar", [False, True], ids=["records", "columns"])
@pytest.mark.parametrize(
    ("change", "before", "number", "after"),
    [({}, 2, 1, 2), ({}, 1, 2, 2), ({"schema.compatibility": "FORWARD"}, 1, 2, 1),
     ({"schema.compatibility": "FULL"}, 2, 1, 2), ({"schema.compatibility": "NONE"}, 2, 1, None),
     ({"files.per.partition": "compact"}, 2, 1, None), (FORMATS["json"], 2, 1, None)],
    ids=["older", "newer", "forward", "full", "none", "compact", "json"],
)  # fmt: skip
def test_a_run_goes_on_with_the_schema_of_the_last_file(change, before, number, after, columnar):
    """`after` None: the run begins without one, and tells none."""
    with avro_messages.known_schemas():
        told = schemas_told()
        config = {**avro_messages.CONVERTER, **FORMATS["avro"], **SINK, **BACKWARD, **change}
        records = [[avro_record(offset, number) for offset in range(20)]]
        outcome, _ = copy(config, records, columnar=columnar, schema_before=told[before - 1])
    assert outcome.error == ""
    found = [report.details.get(OF_LAST_FILE) for report in outcome.reports]
    assert found == [None if after is None else told[after - 1]]
    written = number if after is None else after
    assert len(outcome.files) == 2
    if change is not FORMATS["json"]:
        assert all(("note" in content[0]) is (written == 2) for *_, content in outcome.files)


@pytest.mark.parametrize(
    "config",
    [
        {**WITH_SCHEMA, **FORMATS["orc"]},
        {**WITH_SCHEMA, **FORMATS["parquet"]},
        {**SCHEMALESS, **FORMATS["json"]},
        {"value.converter": STRING, **FORMATS["text"]},
    ],
    ids=["orc", "parquet", "json", "text"],
)
def test_vectorizable_records_all_go_in_columns(config: dict[str, str]) -> None:
    config = {**config, **SINK, "flush.size": "700"}
    reference, _ = copy(config, _vectorizable(3000), columnar=False)
    columnar, in_columns = copy(config, _vectorizable(3000), columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert (in_columns, len(columnar.files)) == (3000, 5)


@pytest.mark.parametrize("columnar", [False, True], ids=["records", "columns"])
@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_files_that_begin_inside_a_batch_have_the_nulls_of_their_own_rows(file_format: str, columnar: bool) -> None:
    """Pyarrow's ORC writer ignores where a sliced struct column begins."""
    inner: list[Any] = [{"n": 0}, None, {"n": 2}]
    values = [avro_messages.message(1, {**ROW, "inner": value}) for value in inner]
    config = {**avro_messages.CONVERTER, **FORMATS[file_format], **SINK, "flush.size": "1"}
    records = [[KafkaRecord("t", 0, offset, None, value, NOW_MS) for offset, value in enumerate(values)]]
    with avro_messages.known_schemas():
        outcome, in_columns = copy(config, records, columnar=columnar)
    assert (outcome.error, in_columns) == ("", len(values) if columnar else 0)
    assert [content[1].split("[")[-1] for *_, content in outcome.files] == [f"{value!r}]]" for value in inner]
