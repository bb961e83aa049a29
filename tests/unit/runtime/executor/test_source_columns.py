"""Values in Arrow become the values of Connect again, where a batch of a source has to go record by record."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema
from airflow_connect.api.columns import RecordColumns
from airflow_connect.api.record import SourceRecord
from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.source import SourceColumns
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.executor.source.columns import (
    ColumnMessages,
    SourceColumnConverter,
    python_values,
    records_of,
)
from airflow_connect.runtime.executor.transforming import Stage
from airflow_connect.transforms.fields.cast import Cast
from airflow_connect.transforms.fields.extract_field import ExtractField
from airflow_connect.transforms.fields.insert_field import InsertField
from airflow_connect.transforms.fields.mask_field import MaskField
from airflow_connect.transforms.fields.replace_field import ReplaceField
from airflow_connect.transforms.fields.timestamp_converter import TimestampConverter
from airflow_connect.transforms.fields.value_to_key import ValueToKey
from airflow_connect.transforms.filter import Filter
from airflow_connect.transforms.headers.header_from import HeaderFrom
from airflow_connect.transforms.headers.insert_header import InsertHeader
from airflow_connect.transforms.predicates import TopicNameMatches
from airflow_connect.transforms.topics.regex_router import RegexRouter
from tests.support.session.searching import examples

STRING = Schema(Type.STRING)


def unscaled(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def test_decimals_are_found_wherever_they_stand():
    money = schema.decimal(2, optional=True)
    nested = schema.struct(("m", money), ("list", schema.array(money)), ("map", schema.map_of(STRING, money)))
    kind = pa.struct([("m", pa.binary()), ("list", pa.list_(pa.binary())), ("map", pa.map_(pa.string(), pa.binary()))])
    values = pa.array(
        [
            {"m": unscaled(-125), "list": [unscaled(1), None], "map": [("a", unscaled(99))]},
            {"m": None, "list": [], "map": []},
            None,
        ],
        kind,
    )

    assert python_values(nested, values) == [
        {"m": Decimal("-1.25"), "list": [Decimal("0.01"), None], "map": {"a": Decimal("0.99")}},
        {"m": None, "list": [], "map": {}},
        None,
    ]


def test_schemaless_values_are_json_documents_or_text():
    assert python_values(None, pa.array([b'{"a": [1, null]}\n', b'"x"'])) == [{"a": [1, None]}, "x"]
    assert python_values(None, pa.array(["x", None])) == ["x", None]


def test_records_have_what_the_columns_say():
    columns = SourceColumns(
        "t", {"f": "x"}, {"n": 2}, STRING, pa.array(["k1", None]), STRING, pa.array(["a", "b"]), pa.array([5, 6])
    )
    first, second = records_of(columns)

    assert (first.topic, first.key, first.value, first.timestamp) == ("t", "k1", "a", 5)
    assert (second.key, second.value, second.source_partition, second.source_offset) == (
        None,
        "b",
        {"f": "x"},
        {"n": 2},
    )
    (plain,) = records_of(SourceColumns("t", {}, {}, None, None, STRING, pa.array(["a"])))
    assert (plain.key_schema, plain.key, plain.timestamp) == (None, None, None)


def column_converter(key: object, value: object, *stages: Stage) -> SourceColumnConverter:
    return SourceColumnConverter(
        SimpleNamespace(chain=SimpleNamespace(stages=stages), key=key, value=value, headers=ByteArrayConverter())
    )


def columns_of(values: pa.Array, value_schema: Schema | None = STRING, **more: object) -> SourceColumns:
    return SourceColumns("t", {}, {}, None, None, value_schema, values)._replace(**more)


def pairs(messages: ColumnMessages | None) -> list[tuple[object, object]]:
    assert messages is not None
    keys = [None] * len(messages.values) if messages.keys is None else messages.keys.to_pylist()
    return list(zip(keys, messages.values.to_pylist(), strict=True))


def test_columns_keep_their_own_times_and_partition_but_not_those_of_the_clock():
    lines = columns_of(pa.array(["a", "b"]), timestamps=pa.array([5, 6]), partition=3)
    converter = column_converter(StringConverter(), StringConverter())

    placed = converter.convert(lines)
    by_clock = converter.convert(lines._replace(timestamps_are_now=True, partition=None))
    unknown = converter.convert(lines._replace(timestamps=pa.array([5, None])))

    assert placed is not None and by_clock is not None and placed.timestamps is not None
    assert (placed.partition, placed.timestamps.to_pylist()) == (3, [5, 6])
    assert (by_clock.partition, by_clock.timestamps) == (None, None)
    assert pairs(placed) == pairs(by_clock) == [(None, "a"), (None, "b")]
    assert unknown is None
    assert [record.partition for record in records_of(lines)] == [3, 3]


def test_structs_are_sent_as_their_converter_writes_them():
    point = schema.struct(("x", Schema(Type.INT32)), ("s", STRING))
    rows = [{"x": 1, "s": "a"}, {"x": 2, "s": 'b"'}]
    values = pa.array(rows, pa.struct([("x", pa.int32()), ("s", pa.string())]))
    json = JsonConverter()
    keyed = columns_of(values, point, keys=pa.array(["k", None]), key_schema=Schema(Type.STRING, optional=True))

    found = column_converter(StringConverter(), json).convert(keyed)

    wanted = [(json.from_connect("t", point, row) or b"").decode() for row in rows]
    assert pairs(found) == [("k", wanted[0]), (None, wanted[1])]
    assert column_converter(StringConverter(), StringConverter()).convert(keyed) is None
    assert column_converter(object(), json).convert(columns_of(values, point)) is None


class OtherText(JsonConverter):
    """Its record form is its own, its columns are inherited."""

    def from_connect(self, topic: str, schema: Schema | None, value: object) -> bytes | None:
        return b"mine"


def test_converter_that_inherits_columns_only_is_asked_record_by_record():
    assert column_converter(StringConverter(), OtherText()).convert(columns_of(pa.array(["a"]))) is None
    assert column_converter(OtherText(), JsonConverter()).convert(columns_of(pa.array(["a"]))) is None


# Transformations

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "at": st.integers(-(10**12), 10**12),
            "n": st.none() | st.integers(-5, 5),
            "s": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        }
    ),
    min_size=1,
    max_size=5,
)
EVENT = schema.struct(
    ("at", Schema(Type.INT64)), ("n", Schema(Type.INT32, optional=True)), ("s", Schema(Type.STRING, optional=True))
)
EVENT_TYPE = pa.struct([("at", pa.int64()), ("n", pa.int32()), ("s", pa.string())])


def stage(transformation: Any, predicate: Any = None, *, negate: bool = False, **config: str) -> Stage:
    transformation.configure({key.replace("_", "."): value for key, value in config.items()})
    return Stage("alias", type(transformation).__name__, transformation, predicate, negate)


def on_topic(pattern: str) -> TopicNameMatches:
    predicate = TopicNameMatches()
    predicate.configure({"pattern": pattern})
    return predicate


CHAINS: dict[str, Callable[[], list[Stage]]] = {
    "insert": lambda: [
        stage(
            InsertField.Value(), topic_field="topic", partition_field="partition", timestamp_field="time",
            static_field="who", static_value="me",
        )
    ],
    "rename, cast": lambda: [
        stage(ReplaceField.Value(), renames="s:text", exclude="at"), stage(Cast.Value(), spec="n:string"),
    ],
    "route": lambda: [stage(RegexRouter(), regex="(.*)", replacement="new-$1")],
    "mask where the topic is": lambda: [stage(MaskField.Value(), on_topic("t"), fields="s")],
    "mask elsewhere": lambda: [stage(MaskField.Value(), on_topic("t"), negate=True, fields="s")],
    "drop": lambda: [stage(Filter(), on_topic("t"))],
    "date": lambda: [stage(TimestampConverter.Value(), field="at", target_type="Timestamp")],
    "extract": lambda: [stage(ExtractField.Value(), field="at")],
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
@settings(deadline=None, max_examples=examples(40))
@given(ROWS, st.sampled_from([None, 1_700_000_000_123]))
def test_transformed_columns_are_what_each_record_gives(
    name: str, rows: list[dict[str, Any]], now_ms: int | None
) -> None:
    stages, count = CHAINS[name](), len(rows)
    stamps = None if now_ms is None else pa.array([now_ms] * count)
    values = pa.array(rows, EVENT_TYPE)
    columns = columns_of(values, EVENT, timestamps=stamps, timestamps_are_now=now_ms is not None)
    columns = columns._replace(keys=pa.array(["k"] * count), key_schema=STRING)
    json = JsonConverter()

    found = column_converter(StringConverter(), json, *stages).convert(columns)

    wanted = []
    for record in records_of(columns):
        after: SourceRecord | None = record
        for each in stages:
            after = after if after is None else each.apply(after)
        if after is not None:
            wanted.append(
                (after.topic, after.key, (json.from_connect("t", after.value_schema, after.value) or b"").decode())
            )
    assert found is not None and found.left_out == count - len(wanted)
    assert [(found.topic, *pair) for pair in pairs(found)] == wanted


@pytest.mark.parametrize("fields", ["n", "at,n"])
@settings(deadline=None, max_examples=examples(40))
@given(ROWS, st.booleans(), st.booleans())
def test_keys_made_of_values_are_what_each_record_gives(
    fields: str, rows: list[dict[str, Any]], is_extracted: bool, has_key: bool
) -> None:
    stages = [stage(ValueToKey(), fields=fields)]
    if is_extracted:
        stages.append(stage(ExtractField.Key(), field="n"))
    columns = columns_of(pa.array(rows, EVENT_TYPE), EVENT)
    if has_key:
        columns = columns._replace(keys=pa.array(["k"] * len(rows)), key_schema=STRING)
    json = JsonConverter()
    found = column_converter(json, json, *stages).convert(columns)
    assert found is not None
    wanted = []
    for record in records_of(columns):
        after = record
        for each in stages:
            after = each.apply(after) or after
        parts = ((after.key_schema, after.key), (after.value_schema, after.value))
        texts = [json.from_connect("t", *part) for part in parts]
        wanted.append(tuple(text if text is None else text.decode() for text in texts))
    assert pairs(found) == wanted


class Retimed(RegexRouter):
    """Sets a time of its own, which a message that is sent in columns cannot have."""

    def apply(self, record: Any) -> Any:
        return record.changed(timestamp=7)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns:
        return batch.changed(timestamps=np.full(len(batch), 7))


class Unable(RegexRouter):
    """Cannot work right now."""

    def apply(self, record: Any) -> Any:
        return record

    def apply_columns(self, batch: RecordColumns) -> RecordColumns:
        raise UnavailableError("The server does not answer.")


@pytest.mark.parametrize(
    "stages",
    [
        [stage(InsertField.Value(), offset_field="o")],
        [stage(HeaderFrom.Value(), fields="s", headers="s", operation="copy")],
        [Stage("a", "Retimed", Retimed())],
        [Stage("a", "Unable", Unable())],
    ],
    ids=["offset of a source", "no columnar form", "sets the time", "fails"],
)
def test_what_a_transformation_finds_not_vectorizable_goes_record_by_record(stages: list[Stage]) -> None:
    values = pa.array([{"at": 1, "n": 2, "s": "x"}], EVENT_TYPE)
    columns = columns_of(values, EVENT, timestamps=pa.array([5]), timestamps_are_now=True)
    assert column_converter(StringConverter(), JsonConverter(), *stages).convert(columns) is None


def test_nulls_among_keys_or_values_go_record_by_record_through_transformations() -> None:
    route = stage(RegexRouter(), regex="t", replacement="u")
    text = Schema(Type.STRING, optional=True)
    converter = column_converter(StringConverter(), StringConverter(), route)
    assert converter.convert(columns_of(pa.array(["a", None]), text)) is None
    keyed = columns_of(pa.array(["a", "b"]), text, keys=pa.array(["k", None]), key_schema=text)
    assert converter.convert(keyed) is None


class Counted:
    """Counts the batches that it gets."""

    batches = 0

    def apply_columns(self, batch: RecordColumns) -> RecordColumns:
        self.batches += 1
        return batch


def test_chain_with_columns_of_sinks_only_is_not_tried_in_columns():
    first, header = Counted(), InsertHeader()
    header.configure({"header": "h", "value.literal": "1"})
    stages = [Stage("a", "Counted", first), Stage("b", "InsertHeader", header)]
    assert column_converter(StringConverter(), StringConverter(), *stages).convert(columns_of(pa.array(["a"]))) is None
    assert first.batches == 0
    only = column_converter(StringConverter(), StringConverter(), *stages[:1])
    assert pairs(only.convert(columns_of(pa.array(["a"])))) == [(None, "a")]
