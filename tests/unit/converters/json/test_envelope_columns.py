"""Messages with a schema in each of them: columns are what JsonConverter reads record by record, or there are none."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.json.base64_columns import base64_column, bytes_column
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.schema import schema_to_json
from airflow_connect.converters.json.writer import WriterOptions, value_writer
from airflow_connect.errors import DataError
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.session.searching import examples
from tests.support.values.connect_values import same

ROW = s.struct(
    ("id", s.INT64),
    ("name", s.OPTIONAL_STRING),
    ("ratio", s.OPTIONAL_FLOAT32),
    ("data", s.OPTIONAL_BYTES),
    ("price", s.decimal(2, optional=True)),
    ("inner", s.struct(("data", s.BYTES), ("ratio", s.FLOAT32), optional=True)),
    ("list", s.array(s.OPTIONAL_BYTES, optional=True)),
    name="row",
)
OTHER = s.struct(("id", s.INT64), name="other")


def converter(**config: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, False)
    return made


def written(schema: Schema, value: Any) -> bytes:
    return converter().from_connect("t", schema, value) or b""


def prefix(schema: Schema, value: Any) -> bytes:
    message = written(schema, value)
    return message[: message.index(b'"payload":') + len(b'"payload":')]


LEAST = {"id": 1}
BEFORE = prefix(ROW, LEAST)
BEFORE_OTHER = prefix(OTHER, LEAST)

floats = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.floats(allow_nan=False, allow_infinity=False)
numbers = floats.map(repr) | st.sampled_from(
    [
        "0",
        "-0",
        "-0.0",
        "1e39",
        "1e-46",
        "16777217",
        "16777217.0000000001",
        "1.401298464324817e-45",
        '"1"',
        "null",
        "1E2",
    ]
)
texts = st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode()) | st.sampled_from(
    [
        "QR==",
        "QQ",
        "QQ=",
        "Q=Q=",
        "====",
        "=QQQ",
        "QQ==QQ==",
        "QQ==\\n",
        "Q Q==",
        "QUJ\\u0044",
        "Q-_=",
        "é",
        "AP8=",
        "/w==",
        "AA==",
    ]
)
quoted = texts.map(lambda text: f'"{text}"') | st.sampled_from(["null", "1", "1.5", "[]"])
PAYLOADS = st.fixed_dictionaries(
    {"id": st.sampled_from(["1", "-1", "2", "1.5", "null"])},
    optional={
        "name": st.sampled_from(['"a"', '"é"', "null", '"\\ud800"', "1"]),
        "ratio": numbers,
        "data": quoted,
        "price": quoted,
        "inner": st.builds('{{"data":{},"ratio":{}}}'.format, quoted, numbers) | st.just("null"),
        "list": st.lists(quoted, max_size=3).map(lambda parts: f"[{','.join(parts)}]") | st.just("null"),
        "more": st.sampled_from(["1", "null", '{"deep":[]}']),
    },
).map(lambda members: "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}")
ROWS = PAYLOADS.map(lambda payload: BEFORE + payload.encode() + b"}")
ODD = st.sampled_from(
    [
        BEFORE_OTHER + b'{"id":1}}',
        BEFORE + b' {"id":1}}',
        BEFORE + b'{"id":1} }',
        BEFORE + b'{"id":1}}\n',
        BEFORE + b'{"id":1},"more":1}',
        BEFORE + b'{"id":1},"payload":{"id":2}}',
        BEFORE + b'{"id":1}}{"id":2}}',
        BEFORE + b'{"id":1}}\n' + BEFORE + b'{"id":2}}',
        BEFORE + b'{"id":1}',
        BEFORE + b"null}",
        BEFORE + b"}",
        BEFORE,
        BEFORE[:-10] + b'"paYload":{"id":1}}',
        b'{"payload":{"id":1},' + BEFORE[1 : -len(b',"payload":')] + b"}",
        BEFORE.replace(b":", b" : ") + b'{"id":1}}',
        b'{"schema":null,"payload":{"id":1}}',
        b'{"schema":{"type":"int64"},"schema":' + BEFORE[len(b'{"schema":') :] + b'{"id":1}}',
        b'{"schema":{"type":"nonsense"},"payload":1}',
        b'{"schema":{"type":"string"},"payload":"a"}',
        b'{"id":1}',
        b"",
        b"null",
        b"[1]",
    ]
)


def one_by_one(
    reader: JsonConverter, messages: Sequence[bytes]
) -> list[tuple[Schema | None, Any, frozenset[str]]] | None:
    """Schema, value and fields that were left out; None: one is an error."""
    found = []
    for message in messages:
        reader.unread.clear()
        try:
            schema, value = reader.to_connect("t", message)
        except DataError:
            return None
        found.append((schema, value, frozenset(reader.unread.found)))
    return found


def check(messages: Sequence[bytes], is_warm: bool = False, **config: str) -> bool:
    """Compare both; returns whether there are columns."""
    expected = one_by_one(converter(**config), messages)
    reader = converter(**config)
    if is_warm:
        one_by_one(reader, messages)
    pieces = reader.to_columns("t", pa.array([b"before", *messages], pa.binary())[1:])
    if pieces is None:
        return False
    assert expected is not None, messages
    rows = [(piece.schema, value) for piece in pieces for value in python_values(piece.schema, piece.values)]
    assert len(rows) == len(expected)
    for (schema, value), (wanted_schema, wanted, _) in zip(rows, expected, strict=True):
        assert schema == wanted_schema and same(value, wanted), (value, wanted)
    assert [row[:2] for row in reader.unread.rows] == [(schema, names) for schema, _, names in expected if names]
    return True


@settings(max_examples=examples(300), deadline=None)
@given(
    messages=st.lists(ROWS, min_size=1, max_size=4) | st.lists(ROWS | ODD, min_size=1, max_size=4),
    is_warm=st.booleans(),
    is_strict=st.booleans(),
)
@example(messages=[BEFORE + b'{"id":1,"ratio":1e39}}'], is_warm=True, is_strict=True)
@example(messages=[BEFORE + b'{"id":1,"price":"AP8=","ratio":16777217.0000000001}}'], is_warm=True, is_strict=False)
def test_columns_are_what_is_read_record_by_record(messages: list[bytes], is_warm: bool, is_strict: bool) -> None:
    check(messages, is_warm, strict_types=str(is_strict).lower())


SCALARS = [
    (s.STRING, ["a", "", "é{}\"\\"]), (s.INT64, [1, -(2**63)]), (s.INT8, [-128]), (s.FLOAT64, [0.5]),
    (s.FLOAT32, [0.5]), (s.BOOLEAN, [True, False]), (s.BYTES, [b"", b"\xff"]), (s.decimal(3), [Decimal("1.500")]),
    (s.date(), [20_000]), (s.timestamp(), [1_700_000_000_123]), (s.array(s.STRING), [["a"], []]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "values"), SCALARS, ids=[f"{schema.type.value}-{n}" for n, (schema, _) in enumerate(SCALARS)]
)
def test_values_that_are_no_structs_are_columns_too(schema: Schema, values: list[Any]) -> None:
    assert check([written(schema, value) for value in values] * 2)


PAYLOADS_OF_SCALARS = [
    '"a"', "1", "-0", "1.5", "1e39", "1e-46", "true", "null", "{}", "[]", "", " 1 ", '1,"v":2', '1,"w":2', '1}{"v":2',
    '1}\n{"v":2', '1},"x":{"a":1', '"QQ=="', '"QR=="', '"QQ"', "NaN", "01", "9" * 1001,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["string", "int32", "float", "double", "boolean", "bytes"])
@pytest.mark.parametrize("strict", ["true", "false"])
def test_odd_payloads_of_scalars_are_read_alike(kind: str, strict: str) -> None:
    usual = {"string": '"a"', "boolean": "true", "bytes": '"QQ=="'}.get(kind, "1")
    in_columns = 0
    for optional, payload in itertools.product([True, False], PAYLOADS_OF_SCALARS):
        schema = json.dumps({"type": kind, "optional": optional})
        messages = [f'{{"schema":{schema},"payload":{text}}}'.encode() for text in (usual, payload, usual)]
        in_columns += check(messages, strict_types=strict)
    assert in_columns


def test_runs_of_schemas_become_pieces_and_spellings_of_one_schema_a_single_one() -> None:
    rows = [BEFORE + b'{"id":%d}}' % n for n in range(4)]
    spelled = [BEFORE.replace(b'":', b'": ') + b'{"id":9}}']
    messages = [*rows, *spelled, *rows, BEFORE_OTHER + b'{"id":1}}', *rows]
    assert check(messages)
    reader = converter()
    pieces = reader.to_columns("t", pa.array(messages, pa.binary())) or []
    assert [len(piece) for piece in pieces] == [9, 1, 4]


def test_schemas_that_change_with_each_message_are_read_record_by_record() -> None:
    rows = [BEFORE + b'{"id":1}}', BEFORE_OTHER + b'{"id":1}}']
    assert check(rows * 8)
    assert not check(rows * 9)


def test_a_schema_with_a_map_is_read_record_by_record() -> None:
    schema = s.struct(("tags", s.map_of(s.STRING, s.STRING)))
    assert not check([written(schema, {"tags": {"a": "b"}})])


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.binary(max_size=100) | st.none(), max_size=8), st.integers(0, 3))
def test_base64_of_a_column_and_back(values: list[bytes | None], skipped: int) -> None:
    column = pa.array(values, pa.binary())[skipped:]
    back = bytes_column(base64_column(column))
    assert back is not None and back.to_pylist() == column.to_pylist()
    assert back.null_count == column.null_count
    back.validate(full=True)


WITH_DEFAULTS = s.struct(
    ("id", Schema(Type.INT32, default=7)),
    ("name", Schema(Type.STRING, optional=True, default="none")),
    ("inner", s.struct(("ok", Schema(Type.BOOLEAN, default=True)), ("n", s.OPTIONAL_INT64), optional=True)),
    ("list", s.array(s.struct(("x", Schema(Type.FLOAT64, optional=True, default=0.5))), optional=True)),
    ("data", Schema(Type.BYTES, default=b"x")),
)
_FIELDS = {
    "id": ["1", "null"],
    "name": ['"a"', "null"],
    "inner": ['{"ok":false}', "{}", '{"ok":null,"n":1}', "null"],
    "list": ["[]", "[{}]", '[{"x":null},{"x":2.5},{}]', "null"],
}


@pytest.mark.parametrize("replaces", ["true", "false"])
@pytest.mark.parametrize("in_envelopes", [True, False])
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({}, optional={name: st.sampled_from(texts) for name, texts in _FIELDS.items()}),
        min_size=1,
        max_size=4,
    )
)
def test_defaults_are_those_of_the_record_path(in_envelopes: bool, replaces: str, rows: list[dict[str, str]]) -> None:
    bodies = ["{" + ",".join([*(f'"{k}":{v}' for k, v in row.items()), '"data":"QQ=="']) + "}" for row in rows]
    schema = schema_to_json(WITH_DEFAULTS, lambda part, default: value_writer(part, WriterOptions())(default))
    content = {} if in_envelopes else {"schema_content": schema}
    made = converter(replace_null_with_default=replaces, **content)
    messages = [(f'{{"schema":{schema},"payload":{body}}}' if in_envelopes else body).encode() for body in bodies]
    pieces = made.to_columns("t", pa.array(messages, pa.binary()))
    try:
        expected = [made.to_connect("t", message) for message in messages]
    except DataError:
        assert pieces is None
        return
    if replaces == "true":
        assert pieces is not None
    if pieces is not None:
        found = [value for piece in pieces for value in python_values(piece.schema, piece.values)]
        assert same(found, [value for _, value in expected])


def test_default_that_is_bytes_is_left_to_the_records() -> None:
    schema = schema_to_json(WITH_DEFAULTS, lambda part, default: value_writer(part, WriterOptions())(default))
    made = converter(schema_content=schema)
    assert made.to_columns("t", pa.array([b'{"data":"QQ=="}', b'{"data":"QQ=="}'], pa.binary())) is not None
    assert made.to_columns("t", pa.array([b'{"data":"QQ=="}', b"{}"], pa.binary())) is None
