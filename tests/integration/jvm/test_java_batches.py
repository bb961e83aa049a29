"""A batch through a chain of Python and Java classes: what comes out is what comes out record by record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.record import Header, KafkaRecord, SinkRecord, SourceRecord
from airflow_connect.api.schema import OPTIONAL_STRING
from airflow_connect.api.transform import Transformation
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.config.resolved.sink import ErrorConfig
from airflow_connect.config.resolved.source import load_source_config
from airflow_connect.connectors.java.chain import JavaChain
from airflow_connect.errors import DataError, JavaPluginError
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.stages import JavaStages
from airflow_connect.retrying import Timing
from airflow_connect.runtime.executor import converting
from airflow_connect.runtime.executor.converting import ConversionError, RecordConverter
from airflow_connect.runtime.executor.error_policy import Failure
from airflow_connect.runtime.executor.java_batches import SinkBatches, SourceBatches
from airflow_connect.runtime.executor.retrying import Retries
from airflow_connect.runtime.executor.source.converting import SourceRecordConverter
from airflow_connect.runtime.reporting.notes import Notes
from tests.support.session.searching import examples, settings

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

COUNTS, MATCHES, REVERSES = (f"plugins.ChainStages${name}" for name in ("Counts", "Matches", "Reverses"))
OLD_DATES = "plugins.ChainStages$MakesOldDates"
STRING = "org.apache.kafka.connect.storage.StringConverter"
WITHOUT_BUSY = ("fail", "drop", "match")
STAGES = ("s0", "s1", "s2")
PREDICATES = ("p0", "p1")


class PythonCounts(Transformation):
    """`ChainStages$Counts` in Python; without temporary failures."""

    config_def = ConfigDef().define(ConfigKey("name", Type.STRING))

    def configure(self, config: Mapping[str, str]) -> None:
        """Remember the name."""
        super().configure(config)
        self._name = config["name"]
        self._calls = 0

    def apply(self, record: Any) -> Any:
        """Count, and do what the value says."""
        self._calls += 1
        if f"fail-{self._name}" in str(record.value):
            raise DataError(f"call {self._calls} of {self._name}")
        if f"drop-{self._name}" in str(record.value):
            return None
        return record.changed(headers=(*record.headers, Header(f"python-{self._name}", None, self._calls)))


class Enlarges(Transformation):
    """Makes a number that is too large for Java of `big`."""

    def apply(self, record: Any) -> Any:
        """Without a schema."""
        return record.changed(value_schema=None, value=1 << 64) if record.value == "big" else record


class OfAllExamples(JavaChain):
    """One JVM: each chain that is opened has objects of its own in it."""

    def close(self) -> None:
        """It goes on."""


@pytest.fixture(scope="module")
def java(plugin_path) -> Iterator[OfAllExamples]:
    use_plugin_path({"plugin.path": str(plugin_path)})
    host = PluginHost.start([plugin_path], is_driver=True, heap_mb=128)
    chain = OfAllExamples(host, JavaStages(host, timeout_s=30, where=", task 3"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(converting, "_java_chain", lambda config, where: chain)
        yield chain
    assert host.close() == []


def retries() -> Retries:
    """A second of retries, which passes only in pauses, in steps that floats add exactly."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += math.ceil(seconds * 1024) / 1024

    errors = ErrorConfig(True, 1000, 60_000, False, False)
    return Retries(errors, Timing(lambda: now[0], pause, lambda low, high: high))


@st.composite
def chains(draw: Any) -> dict[str, str]:
    """Keys of a chain; one of its classes is Java at least."""
    config = {"key.converter": STRING, "value.converter": STRING}
    for part in ("key", "value", "header"):
        if draw(st.booleans()):
            config |= {f"{part}.converter": REVERSES, f"{part}.converter.name": part}
    aliases = STAGES[: draw(st.integers(0, 3))]
    used = set()
    for alias in aliases:
        type_ = draw(st.sampled_from([COUNTS, COUNTS, f"{__name__}:PythonCounts"]))
        config |= {f"transforms.{alias}.type": type_, f"transforms.{alias}.name": alias}
        if type_ == COUNTS:
            config[f"transforms.{alias}.times"] = draw(st.sampled_from(["1", "2", "9"]))
        predicate = draw(st.none() | st.sampled_from(PREDICATES))
        if predicate is not None:
            used.add(predicate)
            config[f"transforms.{alias}.predicate"] = predicate
            config[f"transforms.{alias}.negate"] = draw(st.sampled_from(["true", "false"]))
    for predicate in used:
        if draw(st.booleans()):
            config |= {f"predicates.{predicate}.type": MATCHES, f"predicates.{predicate}.name": predicate}
        else:
            config[f"predicates.{predicate}.type"] = "RecordIsTombstone"
    config |= {"transforms": ",".join(aliases), "predicates": ",".join(sorted(used))}
    if not any(value in (COUNTS, MATCHES, REVERSES) for value in config.values()):
        config |= {"key.converter": REVERSES, "key.converter.name": "key"}
    return config


def texts(draw: Any, config: Mapping[str, str], part: str, verbs: Sequence[str]) -> str | None:
    """Mostly harmless words; backwards where a converter turns them around."""
    if draw(st.integers(0, 7)) == 0:
        return None
    words = ["w"]
    if draw(st.integers(0, 2)) == 0:
        who = draw(st.sampled_from([*STAGES, *PREDICATES, part]))
        words.append(f"{draw(st.sampled_from(verbs))}-{who}")
    text = " ".join(words)
    turned = config.get(f"{part}.converter") == REVERSES and draw(st.booleans())
    return text[::-1] if turned else text


def came_out(pairs: Any) -> list[Any]:
    return [
        (record, (one.stage, one.stage_class, str(one.error)) if isinstance(one, Failure) else one)
        for record, one in pairs
    ]


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_messages(java, data):
    config = data.draw(chains())
    verbs = data.draw(st.sampled_from([WITHOUT_BUSY, (*WITHOUT_BUSY, "busy")]))
    records = []
    for offset in range(data.draw(st.integers(1, 30))):
        key, value = (texts(data.draw, config, part, verbs) for part in ("key", "value"))
        headers = [(f"h{n}", texts(data.draw, config, "header", verbs)) for n in range(data.draw(st.integers(0, 2)))]
        records.append(
            KafkaRecord(
                topic="t",
                partition=1,
                offset=offset,
                key=key and key.encode(),
                value=value and value.encode(),
                timestamp=offset,
                timestamp_type=data.draw(st.sampled_from([1, 1, 1, 2])),
                headers=tuple((name, text and text.encode()) for name, text in headers),
            )
        )

    def opened() -> RecordConverter:
        connector = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", **config}
        return RecordConverter(load_connector_config(connector, {"bootstrap.servers": "x:1"}))

    together = came_out(SinkBatches(opened(), retries()).convert(records))
    single = SinkBatches(opened(), retries())

    assert together == came_out(pair for record in records for pair in single.convert([record]))
    assert [record for record, _ in together] == records
    assert all(one.consumed is record for record, one in together if isinstance(one, SinkRecord))
    if "busy" not in verbs:
        assert together == came_out(record_by_record(opened(), records))


def record_by_record(converter: Any, records: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """How a chain without Java is run."""
    for record in records:
        try:
            yield record, converter.convert(record)
        except ConversionError as error:
            yield record, error.failure


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_records_of_a_source(java, data):
    config = data.draw(chains())
    verbs = data.draw(st.sampled_from([WITHOUT_BUSY, (*WITHOUT_BUSY, "busy")]))
    records = []
    for line in range(data.draw(st.integers(1, 30))):
        value, key = texts(data.draw, {}, "value", verbs), texts(data.draw, {}, "key", verbs)
        found = [texts(data.draw, {}, "header", verbs) for _ in range(data.draw(st.integers(0, 2)))]
        records.append(
            SourceRecord(
                topic=data.draw(st.sampled_from(["t", "u"])),
                key_schema=OPTIONAL_STRING,
                key=key,
                value=value,
                headers=tuple(Header(f"h{n}", OPTIONAL_STRING, text) for n, text in enumerate(found)),
                source_partition={"file": "a"},
                source_offset={"line": line},
            )
        )

    def opened() -> SourceRecordConverter:
        connector = {"name": "c", "connector.class": "FileStreamSource", "topic": "t", **config}
        return SourceRecordConverter(load_source_config(connector, {"bootstrap.servers": "x:1"}))

    together = came_out(SourceBatches(opened(), retries()).convert(records))
    single = SourceBatches(opened(), retries())

    assert together == came_out(pair for record in records for pair in single.convert([record]))
    assert [record for record, _ in together] == records
    if "busy" not in verbs:
        assert together == came_out(record_by_record(opened(), records))


def opened_sink(**config: str) -> RecordConverter:
    connector = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "key.converter": STRING}
    connector |= {"value.converter": STRING, "transforms": "s0", "transforms.s0.type": COUNTS}
    connector |= {"transforms.s0.name": "s0"} | {key.replace("_", "."): value for key, value in config.items()}
    return RecordConverter(load_connector_config(connector, {"bootstrap.servers": "x:1"}))


def messages(*values: str) -> list[KafkaRecord]:
    return [KafkaRecord("t", 0, offset, None, value.encode()) for offset, value in enumerate(values)]


def calls(pairs: Any) -> list[Any]:
    """Of `ChainStages$Counts` s0 for each record; how it failed otherwise."""
    return [str(one.error) if isinstance(one, Failure) else one.headers[-1].value for _, one in pairs]


def test_a_temporary_failure_is_repeated_in_its_stage_only(java):
    given = messages("a", "busy-s0", "c", "fail-s0", "busy-s0", "f")

    once = calls(SinkBatches(opened_sink(), retries()).convert(given))
    often = calls(SinkBatches(opened_sink(transforms_s0_times="9"), retries()).convert(given[:3]))

    failed = f"{COUNTS} failed with org.apache.kafka.connect.errors.DataException: call 5 of s0."
    assert once == [1, 3, 4, failed, 7, 8]
    # 0.3 s, 0.6 s, and what is left of the second.
    busy = f"{COUNTS} failed with org.apache.kafka.connect.errors.RetriableException: busy 4."
    assert often == [1, busy, 6]


def test_an_error_of_java_ends_the_task_and_names_class_and_task(java):
    batches = SinkBatches(opened_sink(), retries())

    with pytest.raises(
        JavaPluginError, match=r"ChainStages\$Counts, task 3 failed .*NoClassDefFoundError: missing/Ins0"
    ):
        list(batches.convert(messages("a", "error-s0", "c")))


def test_a_value_that_python_cannot_hold_fails_alone_and_passes_no_stage_twice(java):
    connector = {"transforms": "s0,old,s1", "transforms_old_type": OLD_DATES, "transforms_s1_type": COUNTS}
    converter = opened_sink(**connector, transforms_s1_name="s1")

    found = calls(SinkBatches(converter, retries()).convert(messages("a", "b", "old", "d", "e")))

    assert [one for one in found if isinstance(one, int)] == [1, 2, 3, 4]
    assert found[2].startswith("A value from Java has no form in Python")


def test_a_value_that_java_cannot_hold_fails_alone(java):
    converter = opened_sink(transforms="big,s0", transforms_big_type=f"{__name__}:Enlarges")

    found = calls(SinkBatches(converter, retries()).convert(messages("1", "big", "3", "big", "5")))

    assert [one for one in found if isinstance(one, int)] == [1, 2, 3]
    assert found[1] == found[3]
    assert "does not fit Java's long" in found[1]


def test_the_time_limit_is_that_of_a_call_and_not_of_a_request(java, monkeypatch):
    monkeypatch.setattr(java.stages, "_timeout_s", 1.0)
    given = messages(*["quick"] * 100, *["slow-s0"] * 30)

    found = calls(SinkBatches(opened_sink(), retries()).convert(given))

    assert found == list(range(1, 131))


def test_numbers_that_do_not_fit_a_cast_are_counted_for_their_record(java):
    cast = {"type": "org.apache.kafka.connect.transforms.Cast$Value", "spec": "int8"}
    connector = {"transforms": "s0,narrow", **{f"transforms_narrow_{key}": value for key, value in cast.items()}}
    connector["value_converter"] = "JsonConverter"
    converter = opened_sink(**connector, **{"value.converter.schemas.enable": "false"})

    list(SinkBatches(converter, retries()).convert(messages("1", "200", "3", "-129", "18446744073709551616")))

    notes = Notes()
    converter.unread.tell(notes)
    cast_note, json_note = sorted(notes.sentences, key=lambda note: "64 bits" in note)
    assert "that the transformation narrow gives them" in cast_note
    assert cast_note.endswith("the whole value. The first is at offset 1 of partition 0. Records: 2.")
    assert json_note.endswith("the whole value. The first is at offset 4 of partition 0. Records: 1.")
