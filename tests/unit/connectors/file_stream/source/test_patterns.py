"""Records with fields: grok, types, lines that do not match, and that both engines find the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.schema import Type
from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.parse.column_search import ColumnSearch, split_by_groups
from airflow_connect.connectors.file_stream.source.parse.grok import expand, shipped_patterns
from airflow_connect.connectors.file_stream.source.parse.pattern_source import PatternSource
from airflow_connect.connectors.file_stream.source.parse.re2_patterns import re2_text
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.patterns.compiled import compile_java_pattern
from tests.unit.connectors.file_stream.source.source_runs import file_source

ACCESS = (
    '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326'
    ' "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"'
)


def pattern(grok: str = "", regex: str = "", types: tuple[str, ...] = (), **others: str) -> PatternSource:
    given_keys = {"definitions": "", "mismatch": "fail", "schema_name": "", **others}
    return PatternSource.of(grok=grok, regex=regex, types=types, **given_keys)


def test_access_log_becomes_typed_fields() -> None:
    found = pattern("%{COMBINEDAPACHELOG}")
    value = found.value(ACCESS)
    assert (value["clientip"], value["auth"], value["verb"], value["response"], value["bytes"]) == (
        "127.0.0.1", "frank", "GET", 200, 2326,
    )  # fmt: skip
    assert value["rawrequest"] is None and value["agent"].startswith('"Mozilla')
    response = found.schema.field("response")
    assert response is not None and (response.schema.type, response.schema.optional) == (Type.INT64, True)


SAMPLES = {
    "IP": ["10.0.0.255", "2001:db8::1", "::1"],
    "HOSTNAME": ["a.example-1.org"],
    "NUMBER": ["12", "-3.5", ".5"],
    "UUID": ["123e4567-e89b-12d3-a456-426614174000"],
    "MAC": ["00:1A:2b:3c:4d:5e"],
    "TIMESTAMP_ISO8601": ["2026-11-22T02:03:04.567Z", "2026-11-22 02:03:04,5+01:00"],
    "HTTPDATE": ["10/Oct/2000:13:55:36 -0700"],
    "SYSLOGTIMESTAMP": ["Nov  2 02:03:04"],
    "LOGLEVEL": ["ERROR", "warning", "Info"],
    "PATH": ["/var/log/x.log", "C:\\temp\\a"],
    "URI": ["https://user@example.org:8080/a/b?c=d"],
    "QUOTEDSTRING": ['"a \\" b"'],
    "EMAILADDRESS": ["a.b@example.org"],
    "JAVACLASS": ["org.example.Main$Inner"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in SAMPLES.items() for text in texts])
def test_shipped_pattern_matches_all_of_its_samples(name: str, text: str) -> None:
    assert pattern(f"^%{{{name}:found}}$").value(text) == {"found": text}


@pytest.mark.parametrize("name", list(shipped_patterns()))
def test_every_shipped_pattern_can_be_compiled(name: str) -> None:
    assert compile_java_pattern(expand(f"%{{{name}}}").expression, python_names=True)


def test_syslog_line() -> None:
    value = pattern("%{SYSLOGLINE}").value("Nov  2 02:03:04 host sshd[123]: Accepted")
    assert value == {
        "timestamp": "Nov  2 02:03:04", "facility": None, "priority": None, "logsource": "host", "program": "sshd",
        "pid": 123, "message": "Accepted",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grok": "%{NOSUCH:x}"}, "There is no grok pattern named NOSUCH"),
        ({"grok": "%{IP:x:money}"}, "Field x has the unknown type 'money'"),
        ({"grok": "%{IP}"}, "has no fields"),
        ({"regex": "(?P<a>x", "grok": ""}, "pattern.regex is not a valid regular expression"),
        ({"regex": "(?P<a>x)", "types": ("b:int",)}, "'b:int', which does not name a field"),
        ({"grok": "%{A:x}", "definitions": "A %{B}\nB %{A}"}, "in a cycle"),
        ({"grok": "%{A:x}", "definitions": "A"}, "does not define a grok pattern"),
    ],
)
def test_wrong_pattern_is_refused_with_a_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        pattern(**arguments)


def test_own_definitions_and_alternatives_of_one_field() -> None:
    found = pattern("^(?:id=%{NUM:id:int}|name=%{WORD:id})$", definitions="NUM [0-9]+")
    assert found.schema.field("id") is not None and len(found.schema.fields) == 1
    assert found.optional is None  # two groups for one field are for the search of single lines
    with pytest.raises(ValueError, match="field id is 'x', which is not a valid int64"):
        found.value("name=x")
    assert found.value("id=7") == {"id": 7}


REGEXES = [
    (r"^(?P<a>\S+) (?P<b>-?\d+)$", ("b:int32",)),
    (r"(?P<a>[a-z]+)(?:=(?P<b>\d+))?", ("b:int64",)),
    (r"(?P<a>.*?) (?P<b>.*)", ()),
    (r"(?P<a>\w+)|(?P<b>\d+ )", ()),
    (r"^(?P<a>[^ ]*) *(?P<b>[+-]?\d+(?:\.\d+)?)\b", ("b:double",)),
    (r"(?P<a>a|ab)(?P<b>c|bcd)?", ()),
    (r"(?P<a>\s*)x(?P<b>[0-9.]+)", ("b:float32",)),
    (r"(?:a|b)+(?P<a>\d{1,3})(?P<b>[^0-9]?)$", ()),
]


@pytest.mark.parametrize(("regex", "types"), REGEXES)
@given(
    st.lists(
        st.lists(st.sampled_from("ab cdx=01.9-+é \t\v\r\n\x85\u2028"), max_size=12).map("".join), min_size=1, max_size=6
    )
)  # fmt: skip
def test_columns_are_what_each_line_alone_gives(regex: str, types: tuple[str, ...], lines: list[str]) -> None:
    found = pattern(regex=regex, types=types)
    columns = found.columns(pa.array(lines, pa.string()))
    if columns is not None:
        assert columns.to_pylist() == [found.value(line) for line in lines]


def test_columns_are_used_for_the_patterns_above_where_all_lines_match() -> None:
    used = [pattern(regex=regex, types=types).optional is not None for regex, types in REGEXES]
    assert used == [True] * 8
    found = pattern("%{COMBINEDAPACHELOG}")
    columns = found.columns(pa.array([ACCESS, ACCESS.replace('"GET /apache_pb.gif HTTP/1.0" 200 2326', '"x" 400 -')]))
    assert columns is not None and columns.to_pylist()[0] == found.value(ACCESS)
    assert (columns.to_pylist()[1]["rawrequest"], columns.to_pylist()[1]["bytes"]) == ("x", None)


MANY_GROUPS = (
    r"^(?P<a>\S+) (?P<b>[^ ]*) \[(?P<c>[^\]]*)\] (?P<d>\w) (?P<e>\d+)(?: (?P<f>x))?(?P<g>.*)$",
    r"(?P<a>a+)(?P<b>a*)(?P<c>.?)(?P<d>.*)(?P<e>[ab]*)(?P<f>b|$)",
    r"(?P<a>a)(?P<b>b?)(?P<c>c?)(?P<d>d?)[(?P<e>]*(?P<e>e?)",
)


@pytest.mark.parametrize("regex", MANY_GROUPS)
@given(
    st.lists(st.sampled_from(["a b [c] d 1", "a  [] d 12 x", "a a [c] d 1 xy", "aaab", "abcde", "ab(e>"]), min_size=1)
)
def test_groups_are_the_same_whether_found_at_once_or_a_few_at_a_time(regex: str, lines: list[str]) -> None:
    compiled = compile_java_pattern(regex, python_names=True)
    column = pa.array(lines, pa.string())
    whole = pc.extract_regex(column, re2_text(compiled.root, compiled.names))

    parts = [(pc.extract_regex(column, expression), names) for expression, names in split_by_groups(compiled)]

    for found, names in parts:
        assert [value is None for value in found.to_pylist()] == [value is None for value in whole.to_pylist()]
        assert all(found.field(name).equals(whole.field(name)) for name in names)
    assert [name for _, names in parts for name in names] == list(compiled.names)
    groups = ColumnSearch(compiled).groups(column)
    assert (groups is None) == bool(whole.null_count)
    assert groups is None or all(groups[name].equals(whole.field(name)) for name in compiled.names)


def test_expression_with_many_groups_is_divided() -> None:
    divided = [split_by_groups(compile_java_pattern(regex, python_names=True)) for regex in MANY_GROUPS]
    assert [[len(names) for _, names in parts] for parts in divided] == [[4, 3], [4, 2], [4, 1]]


LINES = b"a 1\nbad\nb 2\n"
REGEX = {"pattern_regex": r"^(?P<name>\w+) (?P<n>\d+)$", "pattern_types": "n:int32"}
ONE, TWO = {"name": "a", "n": 1}, {"name": "b", "n": 2}


@pytest.mark.parametrize("columnar", ["false", "true"])
@pytest.mark.parametrize(
    ("mismatch", "values", "topics"),
    [
        ("skip", [ONE, TWO], {"lines"}),
        (
            "raw",
            [{**ONE, "message": None}, {"name": None, "n": None, "message": "bad"}, {**TWO, "message": None}],
            {"lines"},
        ),
        ("dead_letter", [ONE, "bad", TWO], {"lines", "dead"}),
    ],
)
def test_lines_that_do_not_match(
    mismatch: str, values: list[Any], topics: set[str], columnar: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(LINES)
    config = {**REGEX, "pattern_mismatch": mismatch, "dead_letter_topic": "dead", "columnar": columnar}
    source = file_source(tmp_path / "f", **config)
    source.run()
    assert source.values == values and {record.topic for record in source.records} == topics
    source.run()
    assert source.values == values


@pytest.mark.parametrize("columnar", ["false", "true"])
def test_lines_that_are_skipped_are_counted_in_the_report(columnar: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(LINES * 3)
    source = file_source(tmp_path / "f", batch_size="1", columnar=columnar, pattern_mismatch="skip", **REGEX)
    source.run()
    told = f"do not match the pattern were skipped; the first one ends at byte 8 of {tmp_path}/f."
    assert source.notes == [f"Lines that {told}", f"3 lines that {told}"]


def test_line_that_does_not_match_fails_the_task_after_the_lines_before(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(LINES)
    source = file_source(tmp_path / "f", batch_size="1", **REGEX)
    with pytest.raises(DataError, match="in the line that ends at byte 8, the pattern does not match") as error:
        source.run()
    assert error.value.code == "file.mismatch" and source.values == [ONE]


def test_batch_of_skipped_lines_moves_the_offset_in_columns(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a 1\nbad\n")
    source = file_source(tmp_path / "f", batch_size="1", columnar="true", pattern_mismatch="skip", **REGEX)
    source.run()
    assert [offset["position"] for _, offset in source.committed.committed()] == [8]


def test_dead_letter_says_why_and_where(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"ok\n\xff\nlonger than ten\n")
    source = file_source(
        tmp_path / "f", invalid_text="dead_letter", line_too_long="dead_letter", line_max_bytes="10",
        dead_letter_topic="dead", columnar="true",
    )  # fmt: skip
    source.run()
    assert source.values == ["ok", "�", "longer tha"]
    dead = [
        {header.key: header.value for header in record.headers} for record in source.records if record.topic == "dead"
    ]
    assert [(found["file.name"], found["file.position"]) for found in dead] == [
        (str(tmp_path / "f"), "5"),
        (str(tmp_path / "f"), "21"),
    ]
    assert "not valid utf-8" in dead[0]["__connect.errors.exception.message"]
    assert "The line has 15 bytes" in dead[1]["__connect.errors.exception.message"]


def test_schema_name_and_record_key(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a 1\n")
    for columnar in ("false", "true"):
        source = file_source(tmp_path / "f", record_key="file", pattern_schema_name="Log", columnar=columnar, **REGEX)
        source.run()
        (record,) = source.records
        assert (record.key, record.value_schema and record.value_schema.name) == (str(tmp_path / "f"), "Log")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"files": "x,y", "file": "z"}, "file and files are both set"),
        ({"file": "ftp://x/y"}, "ftp://x/y is not the address of a file"),
        (
            {"file": "f", "split.bytes": "10", "multiline.pattern": "x"},
            "an event of multiline.pattern may cross the end of a range",
        ),
        ({"file": "f", "split.bytes": "10", "file.encoding": "UTF-16"}, "line ends in UTF-16"),
        ({"file": "f", "split.bytes": "10", "compression": "gzip"}, "gzip can only be read from the beginning"),
        ({"split.bytes": "10"}, "standard input is read by a single task"),
        ({"file": "f", "invalid.text": "dead_letter"}, "dead.letter.topic is not set"),
        ({"file": "f", "pattern.regex": "(?P<a>x)", "pattern.grok": "%{IP:x}"}, "both set"),
        ({"file": "f", "pattern.types": "a:int"}, "neither pattern.regex nor pattern.grok defines any"),
        ({"file": "f", "multiline.pattern": "("}, "It is not a valid regular expression"),
        ({"file": "f", "batch.size": "0"}, "Value must be at least 1"),
        ({"file": "f", "topic": ""}, "String must be non-empty"),
    ],
)
def test_wrong_configuration_is_refused_by_key(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        FileSourceConfig.from_config({"topic": "t", **config})
