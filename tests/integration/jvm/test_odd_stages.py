"""Java classes in a chain that Python runs, with what others do not do: nothing is lost or shown without a word."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.record import Header, SinkRecord, SourceRecord
from airflow_connect.connectors.java.failures import failure_of
from airflow_connect.errors import DataError
from airflow_connect.jvm.data import tables
from airflow_connect.jvm.data.records import Data, Text
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.stages import JavaStages, Outcome

pytestmark = pytest.mark.integration

ODD = "plugins.OddStages$Odd"
SEAL = "not-to-be-shown"


@pytest.fixture(scope="module")
def stages(plugin_path: Path) -> Iterator[JavaStages]:
    host = PluginHost.start([plugin_path], is_driver=True, heap_mb=128)
    host.secret_names = frozenset({"seal"})
    opened = JavaStages(host, timeout_s=30)
    yield opened
    assert opened.close() == []


@pytest.fixture(scope="module")
def odd(stages: JavaStages) -> int:
    return stages.open("transformation", ODD, {"seal": SEAL})


def record(value: Any, schema: s.Schema | None = None, headers: tuple[Header, ...] = ()) -> SinkRecord:
    return SinkRecord(topic="t", partition=0, offset=0, value_schema=schema, value=value, headers=headers)


def error_of(outcome: Outcome[Any]) -> DataError:
    assert outcome.results == []
    failure = outcome.failure
    assert failure is not None
    return failure if isinstance(failure, DataError) else failure_of(failure)


def test_secrets_in_the_exception_of_a_record_are_hidden(stages: JavaStages, odd: int) -> None:
    error = error_of(stages.apply(odd, [record("throw it")]))

    shown = (error.message, error.exception.message, error.exception.stacktrace)
    assert [SEAL in text for text in shown] == [False] * 3
    assert ["[hidden]" in text for text in shown] == [True] * 3
    assert "Caused by: java.lang.IllegalStateException: cause: [hidden]" in error.exception.stacktrace


def test_a_message_of_any_length_is_shortened(stages: JavaStages, odd: int) -> None:
    error = error_of(stages.apply(odd, [record("talk 5000000")]))

    assert len(error.message) + len(error.exception.stacktrace) < 50_000
    assert "aaa (4984000 more characters)" in error.message


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("keys integers", "1 (Integer) and 1 (Long)"),
        ("keys boolean", "true (Boolean) and 1.0 (Double)"),
        ("keys zero", "0.0 (Double) and -0.0 (Double)"),
        ("keys scale", "1.0 (BigDecimal) and 1.00 (BigDecimal)"),
        ("typed zero", "0.0 (Double) and -0.0 (Double)"),
    ],
)
def test_keys_that_are_one_in_python_fail_their_record(stages: JavaStages, odd: int, value: str, named: str) -> None:
    error = error_of(stages.apply(odd, [record(value)]))

    assert f"Two keys of a map, {named}, are one key in Python." in error.message


def test_other_keys_cross(stages: JavaStages, odd: int) -> None:
    (free,) = stages.apply(odd, [record("keys different")]).results
    (typed,) = stages.apply(odd, [record("typed others")]).results

    assert len(free.value["map"]) == 8
    assert (free.value["map"][2], free.value["map"]["2"], free.value["map"][False]) == ("int", "text", "boolean")
    assert free.value["map"][Decimal("2.5")] == "decimal"
    assert typed.value == {1.5: "double", -2.0: "other"}


def test_keys_that_are_one_in_java_fail_their_record(stages: JavaStages, odd: int) -> None:
    nan = {float("nan"): "a", float("nan") + 1: "b"}

    for given in (record({"map": nan}), record(nan, s.map_of(s.FLOAT64, s.STRING))):
        error = error_of(stages.apply(odd, [given]))
        assert "NaN (Double), are one key in Java." in error.message


def test_names_of_headers_that_do_not_cross_fail_their_record(stages: JavaStages, odd: int) -> None:
    raw = b"caf\xe9".decode("utf-8", "surrogateescape")

    for name in (raw, "half \ud800"):
        error = error_of(stages.apply(odd, [record("a", headers=(Header(name, None, "b"),))]))
        assert "is no valid UTF-8" in error.message
    assert "half of a character" in error_of(stages.apply(odd, [record("header it")])).message
    (kept,) = stages.apply(odd, [record("a", headers=(Header("caf\u00e9", None, "b"),))]).results
    assert kept.headers == (Header("caf\u00e9", None, "b"),)


def test_a_header_converter_gets_any_name_or_fails_the_header(stages: JavaStages) -> None:
    simple = stages.open("header_converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter", {})
    raw = b"caf\xe9".decode("utf-8", "surrogateescape")

    assert stages.to_connect(simple, [Text("t", b"17", raw)]).results == [(s.INT8, 17)]
    assert stages.from_connect(simple, [Data("t", s.INT8, 17, raw)]).results == [b"17"]
    for outcome in (
        stages.to_connect(simple, [Text("t", b"17", "\ud800")]),
        stages.from_connect(simple, [Data("t", s.INT8, 17, "\ud800")]),
    ):
        assert "half of a surrogate pair" in error_of(outcome).message


def test_a_source_partition_may_be_a_name_that_is_no_utf_8(stages: JavaStages, odd: int) -> None:
    name = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    given = SourceRecord(topic="t", value="v", source_partition={"filename": name}, source_offset={"position": 1})

    assert stages.apply(odd, [given]).results == [given]


def test_an_answer_is_bounded_by_what_the_class_makes(stages: JavaStages, odd: int) -> None:
    given = [record("a")] * 20 + [record("much 4000000")] * 20
    stages.apply(odd, given[:20])

    results: list[Any] = []
    sizes: list[int] = []
    while len(results) < len(given):
        found = stages.apply(odd, given[len(results) :]).results
        sizes.append(sum(len(one.value) for one in found))
        results += found

    assert [len(one.value) for one in results] == [1] * 20 + [4_000_000] * 20
    assert max(sizes) <= 13_000_000


def test_schemas_of_earlier_requests_are_forgotten(
    stages: JavaStages, odd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_KNOWN", 50)
    of_java, of_python = [record(f"schema {n}") for n in range(10_500)], []
    for n in range(300):
        schema = s.Schema(s.Type.STRING, doc=str(n))
        of_python += [record(f"own {n}", schema), record("again", s.STRING)]

    for given in (of_java, of_python, of_java[:100], of_python[:100]):
        results: list[Any] = []
        while len(results) < len(given):
            outcome = stages.apply(odd, given[len(results) :])
            assert outcome.failure is None
            results += outcome.results
        if given[0].value == "schema 0":
            values = [(one.value_schema.doc, one.value["f"]) for one in results]
            assert values == [(str(n), str(n)) for n in range(len(given))]
        else:
            assert results == given
    assert len(stages._writer._numbers) < 50
    assert len(stages._reader._schemas) < 10_000
