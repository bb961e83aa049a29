"""Files of headers beside those of values: both paths stage the same ones, whatever headers, converters and formats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import Header, KafkaRecord
from airflow_connect.api.schema import MAX_SCHEMA_DEPTH
from airflow_connect.api.transform import R, Transformation
from airflow_connect.java.numbers import MAX_DECIMAL_DIGITS
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages
from tests.unit.connectors.files.shared.staging import NOW_MS, STRING, copy
from tests.unit.connectors.files.shared.test_column_configurations import FORMATS, KAFKA, SCHEMALESS, WITH_SCHEMA
from tests.unit.connectors.files.shared.test_columns import CONFIGS, ERRORS, HOURLY, ODD, TEXTS
from tests.unit.connectors.files.shared.test_key_columns import KEY

STORED = {"store.kafka.headers": "true"}
HEADER_FORMATS = {name: {"headers.format.class": FORMATS[name]["format.class"]} for name in ("json", "parquet", "avro")}
CONVERTERS: list[dict[str, str]] = [
    {},
    {"header.converter": f"{KAFKA}.storage.SimpleHeaderConverter"},
    {"header.converter": STRING},
    {"header.converter": STRING, "header.converter.converter.encoding": "UTF-16"},
    {"header.converter": f"{KAFKA}.converters.ByteArrayConverter"},
    {"header.converter": "JsonConverter", "header.converter.schemas.enable": "false"},
]
TRANSFORMS = f"{KAFKA}.transforms."
STEPS: list[dict[str, str]] = [
    {},
    {"type": "InsertHeader", "header": "new", "value.literal": "1.10"},
    {"type": "InsertHeader", "header": "a", "value.literal": "null"},
    {"type": "DropHeaders", "headers": "a,ü"},
    {"type": "HeaderFrom$Value", "fields": "id,ok", "headers": "a,b", "operation": "copy"},
    {"type": "HeaderFrom$Value", "fields": "name,small", "headers": "c,c", "operation": "move"},
    {"type": "HeaderFrom$Value", "fields": "ratio", "headers": "d", "operation": "copy"},
    {"type": "HeaderFrom$Value", "fields": "day", "headers": "e", "operation": "copy"},
]
PREDICATE = {
    "predicates": "even",
    "predicates.even.type": "tests.unit.connectors.files.shared.test_column_configurations:EvenOffset",
    "transforms.s.predicate": "even",
}
ODD_TEXTS = (
    "", " ", "null", "true", "false", "NULL", " null", "null ", "true\t", "nullable", "falsehood", "0", "00", "007",
    "-0", "+1", "127", "128", "-129", "32768", "2147483648", "999999999999999999", "9223372036854775807",
    "9223372036854775808", "1.1", "1.0", "1e5", "1E400", "1e", "2e2e2e", "0x1F", "1f", "1d", "5e1f2a3b-00c4",
    "12e45678ab", "2020-01-01", "2020-01-1x", "2020-1-001", "2020-02-30", "2020-01-01T10:00:00.000Z", "12:34:56.789Z",
    "12:34:56", "a\0b",
    "4bf92f3577b34da6", "00-4bf92f3577b34da6-01", "1_000", "a:b", "a,b", "1,2", "[1, 2.5]", '["x", 1]', "[", "]",
    '{"a": 1}', '{"a":{"b":[1]}}', '{"a":null}', "{", '"quoted"', '"', "\\", "a\\b", "é", "2é", "١٢٣", "\U0001d7d9",
    "a\nb", "1\n", "a\n", "[" * (MAX_SCHEMA_DEPTH + 1), "1" * 1001, "NaN", "Infinity",
)  # fmt: skip
DATA = st.one_of(
    st.none(),
    st.sampled_from(ODD_TEXTS).map(str.encode),
    st.from_regex(r"[0-9A-Za-z_:. -]{1,10}", fullmatch=True).map(str.encode),
    st.from_regex(r"[0-9eE+.-]{1,6}", fullmatch=True).map(str.encode),
    st.binary(max_size=4),
    st.sampled_from([b"\xff", b"\xed\xa0\x80", b'{"a":1}', b"{", b'"x"']),
)
NAMES = st.sampled_from(["a", "a", "b", "ü", "", "new", "\ufffd"])
HEADERS = st.lists(st.tuples(NAMES, DATA), min_size=1, max_size=3).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> list[list[KafkaRecord]]:
    """Consecutive batches of one partition, most of them with headers and a value in each record."""
    usual = st.sampled_from(draw(st.lists(TEXTS, min_size=1, max_size=4)))
    of_headers = st.sampled_from(draw(st.lists(HEADERS, min_size=1, max_size=6)))
    odd = draw(st.sampled_from([3, 30, 10**6]))
    found: list[list[KafkaRecord]] = []
    offset = 0
    for size in draw(st.lists(st.integers(1, 30), min_size=1, max_size=4)):
        records = []
        for _ in range(size):
            headers, value = draw(of_headers), draw(usual)
            if draw(st.integers(0, odd)) == odd:
                headers = draw(st.sampled_from([(), headers, (("a\0b", b"1"),)]))
                value = draw(ODD | usual)
            stamp = NOW_MS - 10**7 + draw(st.integers(0, 3)) * 3_600_000
            records.append(KafkaRecord("t", 0, offset, b"k", value, stamp, 1, headers))
            offset += draw(st.sampled_from([1, 1, 1, 4]))
        found.append(records)
    return found


@st.composite
def configurations(draw: st.DrawFn, header_format: str) -> dict[str, str]:
    """Keys of a sink that stores headers."""
    values, form = draw(st.sampled_from([(SCHEMALESS, "json"), (WITH_SCHEMA, "parquet"), (WITH_SCHEMA, "avro")]))
    config = {**values, **FORMATS[form], **STORED, **HEADER_FORMATS[header_format], **draw(st.sampled_from(CONVERTERS))}
    config |= {**draw(CONFIGS), **draw(st.sampled_from([{}, HOURLY])), **draw(ERRORS)}
    step = draw(st.sampled_from(STEPS))
    if step:
        config |= {"transforms": "s", **{f"transforms.s.{key}": value for key, value in step.items()}}
        config["transforms.s.type"] = TRANSFORMS + step["type"]
        config |= draw(st.sampled_from([{}, PREDICATE]))
    if draw(st.booleans()):
        config |= {
            "store.kafka.keys": "true",
            "key.converter": STRING,
            "keys.format.class": FORMATS["json"]["format.class"],
        }
    return config | ({"timezone": "UTC"} if "rotate.schedule.interval.ms" in config else {})


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_both_paths_stage_the_same_files_of_headers(header_format: str, data: st.DataObject) -> None:
    config, records = data.draw(configurations(header_format)), data.draw(batches())
    flush_on_end, smallest = data.draw(st.booleans()), data.draw(st.sampled_from([1, 4]))
    with patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", smallest):
        reference, _ = copy(config, records, columnar=False, flush_on_end=flush_on_end)
        columnar, _ = copy(config, records, columnar=True, flush_on_end=flush_on_end)
    if "cannot write a value" in columnar.error and columnar.error != reference.error:
        assert reference.error or (not flush_on_end and any(report.left for report in reference.reports))
        return
    assert (columnar.error, columnar) == (reference.error, reference)


def _records(headers: Sequence[tuple[tuple[str, bytes | None], ...]]) -> list[list[KafkaRecord]]:
    """Batches of a thousand records."""
    values = [json.dumps({"id": n, "ok": True, "name": f"n{n % 5}"}).encode() for n in range(len(headers))]
    stamps = [NOW_MS + n * 7919 % 5 * 3_600_000 for n in range(len(headers))]
    made = [KafkaRecord("t", 0, n, b"k", values[n], stamps[n], 1, headers[n]) for n in range(len(headers))]
    return [made[start : start + 1000] for start in range(0, len(made), 1000)]


def assert_same(config: dict[str, str], records: list[list[KafkaRecord]]) -> tuple[Any, int]:
    """Both paths stage the same; returns what, and how many records were columns."""
    reference, _ = copy(config, records, columnar=False)
    columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    return columnar, in_columns


@pytest.mark.parametrize(
    "layout", [{}, HOURLY, {**HOURLY, "files.per.partition": "compact"}], ids=["one", "hours", "compact"]
)
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
@pytest.mark.parametrize("converter", CONVERTERS[:-1], ids=["default", "simple", "string", "utf-16", "bytes"])
def test_headers_are_all_written_in_columns(
    header_format: str, layout: dict[str, str], converter: dict[str, str]
) -> None:
    config = {**WITH_SCHEMA, **FORMATS["parquet"], **HEADER_FORMATS[header_format], **STORED, **layout, **converter}
    texts = [text.encode() for text in ODD_TEXTS if len(text) < 100]
    headers = [(("a", texts[n % len(texts)]), ("b", None), ("a", b"%x" % n)) for n in range(3000)]
    columnar, in_columns = assert_same({**config, "flush.size": "700"}, _records(headers))
    assert (columnar.error, in_columns) == ("", 3000)
    assert len([file for file in columnar.files if ".headers." in file[0]]) == len(columnar.files) // 2 > 0


@pytest.mark.parametrize("predicate", [{}, PREDICATE], ids=["all", "some"])
@pytest.mark.parametrize(
    "step", [step for step in STEPS[1:] if "ratio" not in step.values() and "day" not in step.values()]
)
def test_transformations_of_headers_that_are_stored_are_columns(
    step: dict[str, str], predicate: dict[str, str]
) -> None:
    config = {**WITH_SCHEMA, **FORMATS["json"], **HEADER_FORMATS["json"], **STORED, "flush.size": "700"}
    config |= {"transforms": "s", **{f"transforms.s.{key}": value for key, value in step.items()}, **predicate}
    config["transforms.s.type"] = TRANSFORMS + step["type"]
    is_mixed = bool(predicate) and step.get("operation") == "move"  # Records of two schemas in turn.
    headers = [(("a", b"1"), ("z", b"%d" % n))[n % 2 :] for n in range(2000)]
    columnar, in_columns = assert_same(config, _records(headers))
    assert (columnar.error, in_columns) == ("", 0 if is_mixed else 2000)


@pytest.mark.parametrize("odd", [(), (("a", b"[" * (MAX_SCHEMA_DEPTH + 1)),), (("a\0b", b"1"),)])
def test_record_whose_headers_are_no_columns_takes_only_its_neighbours_along(
    odd: tuple[tuple[str, bytes], ...],
) -> None:
    config = {**SCHEMALESS, **FORMATS["json"], **HEADER_FORMATS["json"], **STORED, "flush.size": "400"}
    headers: list[Any] = [(("a", b"1"),)] * 1000
    headers[500] = odd
    columnar, in_columns = assert_same({**config, "errors.tolerance": "all"}, _records(headers))
    assert columnar.error == ""
    assert 1000 - 64 <= in_columns < 1000


REFUSED = [
    b"[" * (MAX_SCHEMA_DEPTH + 1),
    b'{"a":' * (MAX_SCHEMA_DEPTH + 1),
    b"-" + b"1" * (MAX_DECIMAL_DIGITS + 1),
]
BARELY_READ = [b"[" * MAX_SCHEMA_DEPTH, b"]" * 200, b"1" * MAX_DECIMAL_DIGITS, b'"' + b"[" * 300, b"x" + b"{" * 300]


@pytest.mark.parametrize("converter", [{}, {"header.converter": STRING}], ids=["simple", "string"])
@pytest.mark.parametrize("errors", [{}, {"errors.tolerance": "all"}], ids=["fail", "tolerate"])
@pytest.mark.parametrize("text", [*REFUSED, *BARELY_READ], ids=[f"{n}" for n in range(len(REFUSED + BARELY_READ))])
def test_header_that_is_not_stored_and_refused_fails_its_record_on_both_paths(
    text: bytes, errors: dict[str, str], converter: dict[str, str]
) -> None:
    config = {**SCHEMALESS, **FORMATS["json"], "flush.size": "400", **errors, **converter}
    headers: list[Any] = [(("a", b"[1]"), ("b", None))] * 1000
    headers[700] = (("a", b"1"), ("z", text))
    columnar, in_columns = assert_same(config, _records(headers))
    if text in REFUSED and not converter:
        assert ("t-0@700 failed in HEADER_CONVERTER" in columnar.error) == (not errors)
        assert not errors or (1000 - 64 <= in_columns < 1000 and columnar.reports[0].filtered == 1)
    else:
        assert (columnar.error, in_columns) == ("", 1000)


class Marked(Transformation):
    """Adds a header, but not in columns, and does not say that it would."""

    columns_of_sinks_only = True

    def apply(self, record: R) -> R:
        """One header more."""
        return record.changed(headers=(*record.headers, Header("m", None, "x")))

    def apply_columns(self, batch: Any) -> Any:
        """Written before columns had headers."""
        return batch


class Made(Transformation):
    """Makes columns anew, without headers."""

    def apply(self, record: R) -> R:
        """The same."""
        return record

    def apply_columns(self, batch: Any) -> Any:
        """Loses headers."""
        return batch.changed(headers=None)


@pytest.mark.parametrize("kind", [Marked, Made])
def test_transformation_that_knows_no_headers_gets_records(kind: type[Transformation]) -> None:
    config = {**SCHEMALESS, **FORMATS["json"], **HEADER_FORMATS["json"], "flush.size": "400", "transforms": "own"}
    config["transforms.own.type"] = f"{__name__}:{kind.__name__}"
    records = _records([(("a", b"1"),)] * 500)
    _, in_columns = assert_same({**config, **STORED}, records)
    assert in_columns == 0
    assert assert_same(config, records)[1] == 500


def test_records_without_a_value_keep_the_headers_of_the_others_in_columns() -> None:
    config = {**SCHEMALESS, **FORMATS["json"], **HEADER_FORMATS["json"], **STORED, "flush.size": "400"}
    (records,) = _records([(("a", b"%d" % n),) for n in range(900)])
    given: list[KafkaRecord] = []
    for record in records:
        is_null = record.offset % 3 == 1
        given.append(
            KafkaRecord("t", 0, record.offset, b"k", None if is_null else record.value, NOW_MS, 1, record.headers)
        )
    columnar, in_columns = assert_same({**config, "behavior.on.null.values": "ignore"}, [given])
    assert (columnar.error, in_columns) == ("", 900)


def test_runs_of_two_schemas_in_one_batch_keep_their_headers() -> None:
    config = {**avro_messages.CONVERTER, **FORMATS["json"], **HEADER_FORMATS["json"], **STORED, "flush.size": "1000"}
    values = [avro_messages.message(1, KEY), avro_messages.message(2, {**KEY, "note": "of the second"})]
    records = [
        KafkaRecord("t", 0, n, b"k", values[n // 150], NOW_MS, 1, (("a", b"%d" % n),) * (n % 2 + 1)) for n in range(300)
    ]
    with avro_messages.known_schemas():
        columnar, in_columns = assert_same(config, [records])
    assert (columnar.error, in_columns, len(columnar.files)) == ("", 300, 4)
