"""Java classes in the chains of Python connectors, in runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.driver.entry import run_connector, validate_connector
from tests.integration.connectors.java.conftest import STRING
from tests.support.copies.java_plugin import JavaConnector, locked_plugin
from tests.support.kafka_data import TopicProducer
from tests.support.steps import HookedEngine

pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]

COUNTS, MATCHES, REVERSES = (f"plugins.ChainStages${name}" for name in ("Counts", "Matches", "Reverses"))
JSON = "org.apache.kafka.connect.json.JsonConverter"
Mixed = Callable[..., JavaConnector]


@pytest.fixture
def mixed(kafka: KafkaBroker, plugin_path: Path, unique_name: str, tmp_path: Path) -> Mixed:
    """`mixed(topic, **keys)`: a sink that writes JSON into a directory; `_` in a key stands for `.`."""

    def make(topic: str, **keys: str) -> JavaConnector:
        config = {
            "connector.class": "LocalSinkConnector",
            "topics": topic,
            "store.url": f"file://{tmp_path}/out",
            "format.class": "JsonFormat",
            "flush.size": "1000",
            "airflow.java.heap.mb": "64",
        }
        config |= {key.replace("_", "."): value for key, value in keys.items()}
        worker = {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false"}
        return JavaConnector(kafka.bootstrap, f"mixed-{unique_name}", plugin_path, config, worker)

    return make


def written(tmp_path: Path) -> list[Any]:
    """The values of all records, by the names of their files."""
    files = sorted(path for path in (tmp_path / "out").rglob("*.json") if "+tmp" not in path.parts)
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def produced(make_topic: Callable[..., str], produce: TopicProducer, values: list[Any]) -> str:
    topic = make_topic(1)
    produce(topic, [(0, b"k", value if value is None else json.dumps(value).encode()) for value in values])
    return topic


def test_transformation_and_predicate_in_java_around_python(
    mixed: Mixed, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path
) -> None:
    values = [{"n": n, "say": "match-p" if n % 2 else ("drop-count" if n == 4 else "")} for n in range(12)]
    connector = mixed(
        produced(make_topic, produce, values),
        transforms="count,move,guarded",
        transforms_count_type=COUNTS,
        transforms_count_name="count",
        transforms_move_type="HeaderFrom$Value",
        transforms_move_fields="say",
        transforms_move_headers="said",
        transforms_move_operation="copy",
        transforms_guarded_type="InsertField$Value",
        transforms_guarded_static_field="by",
        transforms_guarded_static_value="python",
        transforms_guarded_predicate="p",
        predicates="p",
        predicates_p_type=MATCHES,
        predicates_p_name="p",
    )

    report = connector.run()

    assert (report.records, report.filtered) == (11, 1)
    found = written(tmp_path)
    # The predicate is true for each fifth of its calls, too, which are for records 5 and 10.
    assert [row["n"] for row in found] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert [row["n"] for row in found if "by" in row] == [1, 3, 5, 7, 9, 10, 11]
    named = (
        f"Java classes run in a JVM beside each task, and records are not processed in columns: {COUNTS}, {MATCHES}."
    )
    assert named in report.notes


def test_a_transformation_of_others(
    mixed: Mixed, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path
) -> None:
    connector = mixed(
        produced(make_topic, produce, [{"order_id": 1, "note": None}, {"order_id": 1 << 40, "order_city": "Köln"}]),
        transforms="rename",
        transforms_rename_type="com.github.jcustenborder.kafka.connect.transform.common.PatternRename$Value",
        transforms_rename_field_pattern="^order_",
        transforms_rename_field_replacement="",
    )
    connector.plugin_path = locked_plugin(tmp_path / "plugins", "kafka-connect-transform-common-0.1.0.14")

    assert connector.run().records == 2

    assert written(tmp_path) == [{"id": 1, "note": None}, {"id": 1 << 40, "city": "Köln"}]


def test_converters_in_java_and_dead_letters(
    mixed: Mixed, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path
) -> None:
    topic, letters = make_topic(1), make_topic(1)
    values = [b"olleh", b"fail-v", b"olleh", b"busy-v"]
    produce(topic, [(0, b"k", value, 1000, [("h", b"x")]) for value in values])
    connector = mixed(
        topic,
        value_converter=REVERSES,
        value_converter_name="v",
        header_converter=REVERSES,
        store_kafka_headers="true",
        headers_format_class="JsonFormat",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=letters,
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )

    report = connector.run()

    assert (report.records, report.dead_lettered) == (2, 2), report
    # The fourth call is busy, and nothing is repeated: there is no errors.retry.timeout.
    assert [row for row in written(tmp_path) if isinstance(row, str)] == ["1 hello", "3 hello"]
    found = [{name: data.decode() for name, data in letter.headers()} for letter in connector.messages(letters)]
    context = "__connect.errors."
    assert [
        (letter[f"{context}stage"], letter[f"{context}class.name"], letter[f"{context}exception.class.name"])
        for letter in found
    ] == [
        ("VALUE_CONVERTER", REVERSES, "org.apache.kafka.connect.errors.DataException"),
        ("VALUE_CONVERTER", REVERSES, "org.apache.kafka.connect.errors.RetriableException"),
    ]
    assert found[0][f"{context}exception.message"] == "call 2 of v"
    assert "at plugins.ChainStages$Script.call" in found[0][f"{context}exception.stacktrace"]


def test_a_partition_that_ends_with_its_dead_letters_goes_on_in_the_next_run(
    mixed: Mixed, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path
) -> None:
    values = [{"n": n, "say": "fail-count" if n in (2, 5) else ""} for n in range(10)]
    connector = mixed(
        produced(make_topic, produce, values),
        transforms="count",
        transforms_count_type=COUNTS,
        transforms_count_name="count",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=make_topic(1),
        errors_deadletterqueue_topic_replication_factor="1",
    )
    engine = HookedEngine(change=lambda task: replace(task, max_dead_letter_bytes=1))

    reports = [run_connector(connector.spec(), lambda _event: None, engine) for _ in range(3)]

    assert [(report.records, report.dead_lettered) for report in reports] == [(2, 1), (2, 1), (4, 0)]
    assert [row["n"] for row in written(tmp_path)] == [0, 1, 3, 4, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("verb", "code", "said"),
    [
        ("error", "java.plugin_failed", "NoClassDefFoundError: missing/Incount"),
        ("hang", "java.blocked", "did not return from 'run_stage' within 1 s"),
        ("halt", "java.jvm_gone", "has ended with exit code 7"),
    ],
)
def test_a_jvm_that_fails_fails_the_run_and_the_next_run_has_everything_once(
    mixed: Mixed,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    tmp_path: Path,
    unique_name: str,
    verb: str,
    code: str,
    said: str,
) -> None:
    values = [{"n": n, "say": f"{verb}-count" if n == 300 else ""} for n in range(500)]
    connector = mixed(
        produced(make_topic, produce, values),
        transforms="count",
        transforms_count_type=COUNTS,
        transforms_count_name="count",
        transforms_count_mark=str(tmp_path / "halted"),
        errors_tolerance="all",
        airflow_java_options=f"-Dtest={unique_name}",
        airflow_java_block_timeout_ms="1000",
    )

    failed = connector.try_run()

    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == code, failed.error
    assert f"{COUNTS}, task 0" in failed.error["message"]
    assert said in failed.error["message"]
    assert written(tmp_path) == []
    assert processes_with(unique_name) == []

    report = connector.run(transforms="" if verb != "halt" else "count")

    assert report.records == 500
    assert [row["n"] for row in written(tmp_path)] == list(range(500))
    assert processes_with(unique_name) == []


def processes_with(text: str) -> list[str]:
    """Command lines of processes that have it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if f"-Dtest={text}" in line:
            found.append(line)
    return found


def test_source_with_java_in_its_chain(mixed: Mixed, make_topic: Callable[..., str], tmp_path: Path) -> None:
    topic, file = make_topic(1), tmp_path / "lines.txt"
    file.write_text("a\ndrop-count\nc\nfail-count\ne\n")
    connector = mixed("-")
    connector.config = {
        "connector.class": "FileStreamSource",
        "topic": topic,
        "file": str(file),
        "transforms": "count,by",
        "transforms.count.type": COUNTS,
        "transforms.count.name": "count",
        "transforms.by.type": "InsertHeader",
        "transforms.by.header": "by",
        "transforms.by.value.literal": "python",
        "value.converter": REVERSES,
        "errors.tolerance": "all",
    }

    report = connector.run()
    with file.open("a") as more:
        more.write("g\n")
    again = connector.run()

    assert report.source is not None
    assert (report.records, report.filtered, report.source.failed) == (3, 1, 1)
    assert again.records == 1
    found = connector.messages(topic)
    assert [message.value() for message in found] == [b"1 a", b"2 c", b"3 e", b"1 g"]
    assert [message.headers() for message in found] == [
        [("call-count", b"%d" % call), ("by", b"python")] for call in (1, 3, 5, 1)
    ]
    assert any(f"not processed in columns: {REVERSES}, {COUNTS}" in note for note in report.notes)


def findings(connector: JavaConnector) -> list[tuple[str, str]]:
    return [(found["key"], found["level"]) for found in validate_connector(connector.spec())]


def test_keys_of_java_classes_are_checked_without_a_plugin_host(
    mixed: Mixed, make_topic: Callable[..., str], produce: TopicProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = produced(make_topic, produce, [{"n": 1}])
    right = {"transforms": "count", "transforms_count_type": COUNTS, "value_converter": REVERSES}
    mixed(topic, **right).run()  # Java was asked for the keys, once.
    monkeypatch.setattr("airflow_connect.jvm.host.PluginHost.start", no_java)

    assert mixed(topic, **right).run().status == "empty"
    assert findings(mixed(topic, **right)) == []
    wrong = mixed(topic, **right, transforms_count_times="few", value_converter_times="many")
    assert ("transforms.count.times", "error") in findings(wrong)
    wrong.config.pop("transforms.count.times")
    assert ("value.converter.times", "error") in findings(wrong)
    assert findings(mixed(topic)) == [("airflow.java.heap.mb", "ignored")]


def no_java(*_arguments: object, **_named: object) -> None:
    """No JVM may start."""
    raise AssertionError("A plugin host was started.")
