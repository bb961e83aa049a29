"""The metrics source without servers: ranges, rounds, offsets, and a fleet of 100,000 source partitions."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.config import plugins
from airflow_connect.api.record import SourceRecord
from airflow_connect.connectors.metrics import psutil_sampler
from airflow_connect.connectors.metrics.config import MetricsConfig
from airflow_connect.connectors.metrics.connector import MetricsSourceConnector
from airflow_connect.connectors.metrics.ranges import HostRange, ranges_of
from airflow_connect.connectors.metrics.sampler import Sample, open_sampler
from airflow_connect.connectors.metrics.task import MetricsSourceTask
from airflow_connect.errors import ConfigError, ConnectError, DataError, TaskFailedError, UnavailableError

CLOCK_MS = 1_700_000_000_000
SAMPLERS = "tests.integration.connectors.metrics.fleet"
FLEET = {"topic": "t", "sampler.class": f"{SAMPLERS}:FleetSampler", "fleet.hosts": "8"}


class Context:
    """What a run gives: a clock, and offsets that this test has committed."""

    run_id = "run-1"
    transaction = None

    def __init__(self, clock_ms: int = CLOCK_MS) -> None:
        self.clock_ms = clock_ms
        self.config: Mapping[str, str] = {}
        self.known: dict[tuple[Any, ...], Mapping[str, Any]] = {}

    @property
    def offset_reader(self) -> Context:
        return self

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.known.get(tuple(partition.items()))

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def committed(self) -> list[Any]:
        raise AssertionError("nobody needs to see all offsets")

    def commit(self, records: Iterable[SourceRecord]) -> None:
        self.known.update((tuple(record.source_partition.items()), record.source_offset) for record in records)

    def raise_error(self, error: Exception) -> None:
        raise error

    def request_task_reconfiguration(self) -> None:
        raise AssertionError("nothing changes")


def connector(config: Mapping[str, str]) -> MetricsSourceConnector:
    made = MetricsSourceConnector()
    made.initialize(Context())
    made.start(config)
    return made


def task(config: Mapping[str, str], context: Context | None = None) -> MetricsSourceTask:
    made = MetricsSourceTask()
    made.initialize(context or Context())
    made.start(config)
    return made


def read(task: MetricsSourceTask, polls: int = 10**6) -> list[SourceRecord]:
    found: list[SourceRecord] = []
    while polls and not task.has_ended():
        polls -= 1
        try:
            found += task.poll() or ()
        except UnavailableError:
            continue
    return found


@given(st.sets(st.text("abcxyz-é0", min_size=1, max_size=4)), st.integers(1, 9), st.text("abcxyz-é0", max_size=5))
def test_ranges_hold_every_name_once(hosts: set[str], count: int, new: str) -> None:
    found = ranges_of(sorted(hosts), count)

    assert len(found) == max(1, min(count, len(hosts)))
    for host in (*hosts, new):
        assert sum(host in part for part in found) == 1
    sizes = [sum(host in part for host in hosts) for part in found]
    assert max(sizes) - min(sizes) <= 1
    assert [HostRange.of(part.config()) for part in found] == found


def test_hundred_thousand_partitions_are_shared_by_ranges_and_read_once() -> None:
    config = {**FLEET, "fleet.hosts": "10000", "fleet.metrics": "10"}
    planned = connector(config).task_configs(4)
    contexts = [Context() for _ in planned]

    records = [read(task(given, context)) for given, context in zip(planned, contexts, strict=True)]

    assert max(len(json.dumps(given)) for given in planned) < 400
    assert [len(found) for found in records] == [25_000] * 4
    bounds = [(given["task.hosts.from"], given["task.hosts.to"]) for given in planned]
    assert all(before[1] == after[0] for before, after in pairwise(bounds)) and (bounds[0][0], bounds[-1][1]) == (
        "",
        "",
    )
    partitions = {tuple(record.source_partition.items()) for found in records for record in found}
    assert len(partitions) == 100_000
    # Another attempt finds nothing left to do, and needs no list either.
    for settings, context, found in zip(planned, contexts, records, strict=True):
        context.commit(found)
        assert read(task(settings, context)) == []


def test_record_says_host_metric_value_unit_and_instant() -> None:
    first, *_ = read(task(FLEET))

    assert first.value_schema is not None and first.value_schema.name == "airflow_connect.metrics.Sample"
    assert (first.topic, first.key) == ("t", "host-00000")
    assert first.source_partition == {"host": "host-00000", "metric": "metric.0"}
    assert first.source_offset == {"timestamp": CLOCK_MS}
    assert first.value == {
        "host": "host-00000", "metric": "metric.0", "value": 0.0, "unit": "bytes", "timestamp": first.timestamp,
    }  # fmt: skip
    assert [field.name for field in first.value_schema.fields] == list(first.value)


def test_attempt_after_a_crash_measures_only_what_was_not_committed() -> None:
    context = Context()
    config = {**FLEET, "batch.size": "1"}
    context.commit(read(task(config, context), polls=2))
    half = read(task(config, context), polls=1)
    context.commit(half[:5])

    rest = read(task(config, context))

    assert len(half) == 10
    assert [record.source_partition["host"] for record in rest[:5]] == ["host-00002"] * 5
    assert len(rest) == 80 - 20 - 5


def test_run_after_a_run_measures_everything_again() -> None:
    context = Context()
    context.commit(read(task(FLEET, context)))
    context.clock_ms += 1

    again = read(task(FLEET, context))

    assert len(again) == 80
    assert {record.source_offset["timestamp"] for record in again} == {CLOCK_MS + 1}


def test_rounds_of_a_run_are_an_interval_apart_and_end_it() -> None:
    begun_ms = int(time.time() * 1000)
    made = task({**FLEET, "samples.per.run": "3", "sample.interval.ms": "300"})

    records = read(made)

    assert len(records) == 240
    assert [record.source_offset["timestamp"] - CLOCK_MS for record in records[::80]] == [0, 300, 600]
    # A round may come late, and the next one then sooner after it; none comes before it is due.
    waited = [(records[80 * number].timestamp or 0) - begun_ms - number * 300 for number in range(3)]
    assert min(waited) >= 0
    assert made.poll() is None


def test_filters_choose_hosts_and_metrics() -> None:
    config = {**FLEET, "hosts": "host-0000[12],host-00007,unknown", "metrics": "metric.[3-5],metric.9"}

    found = {tuple(record.source_partition.values()) for record in read(task(config))}

    assert found == {(f"host-0000{host}", f"metric.{metric}") for host in (1, 2, 7) for metric in (3, 4, 5, 9)}
    assert len(connector(config).task_configs(8)) == 3


def test_no_host_at_all_ends_at_once() -> None:
    config = {**FLEET, "hosts": "nobody", "samples.per.run": "1000", "sample.interval.ms": "100000"}
    (given,) = connector(config).task_configs(8)

    assert task(given).has_ended()


def test_host_that_is_busy_is_asked_again_and_keeps_its_place() -> None:
    made = task({**FLEET, "metrics": "metric.0"})

    first = made.poll()
    rest = made.poll()

    assert first is not None and [record.key for record in first] == ["host-00000", "host-00001", "host-00002"]
    assert rest is not None and [record.key for record in rest] == [f"host-0000{n}" for n in range(3, 8)]


def test_host_that_is_busy_first_is_told_to_the_runtime() -> None:
    made = task({**FLEET, "hosts": "host-00003"})

    with pytest.raises(UnavailableError, match="busy"):
        made.poll()
    assert len(made.poll() or ()) == 10


def test_host_that_cannot_be_measured_is_named() -> None:
    with pytest.raises(TaskFailedError, match=r"host-00001 could not be measured: ValueError: it does not answer\."):
        read(task({**FLEET, "fleet.broken": "host-00001"}))


class Doubling:
    """Gives a metric twice."""

    is_local = False

    def hosts(self) -> list[str]:
        return ["a"]

    def sample(self, host: str) -> list[Sample]:
        return [Sample("m", 1), Sample("m", 2)]

    def close(self) -> None:
        """Nothing is open."""


def test_metric_that_comes_twice_is_refused() -> None:
    with pytest.raises(DataError, match="the metric m of a twice"):
        read(task({"topic": "t", "sampler.class": f"{__name__}:Doubling"}))


def test_sampler_of_its_own_host_has_one_task_and_measures_where_that_runs() -> None:
    config = {"topic": "t", "metrics": "cpu.percent,memory.*,load.1m,disk.used:/,network.bytes_sent,system.uptime"}
    planned = connector(config).task_configs(8)

    records = read(task(planned[0]))

    assert len(planned) == 1
    assert {record.source_partition["host"] for record in records} == {socket.gethostname()}
    values = {record.value["metric"]: record.value for record in records}
    assert {"cpu.percent", "memory.total", "memory.available", "load.1m", "system.uptime"} <= set(values)
    assert values["memory.total"]["unit"] == "bytes" and values["memory.total"]["value"] > 2**20
    assert 0 <= values["memory.available"]["value"] <= values["memory.total"]["value"]
    assert 0 <= values["cpu.percent"]["value"] <= 100
    assert values["system.uptime"]["unit"] == "seconds"


def test_another_host_than_its_own_is_refused() -> None:
    with pytest.raises(DataError, match="psutil sees only its own host"):
        list(psutil_sampler.PsutilSampler().sample("elsewhere"))


def test_mount_that_went_away_has_no_numbers() -> None:
    def gone(mount: str) -> None:
        raise FileNotFoundError(mount)

    with patch.object(psutil, "disk_usage", gone):
        metrics = {sample.metric for sample in psutil_sampler.PsutilSampler().sample(socket.gethostname())}
    assert metrics and not any(metric.startswith("disk.used:") for metric in metrics)


def test_missing_psutil_is_told_with_the_extra_that_brings_it() -> None:
    with (
        patch.dict(sys.modules, {"psutil": None}),
        pytest.raises(ConfigError, match="Python package psutil, which is not installed") as caught,
    ):
        open_sampler({"topic": "t"})
    assert "airflow-connect[metrics]" in caught.value.suggestion


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("samples.per.run", "0", "samples.per.run"),
        ("sample.interval.ms", "0", "sample.interval.ms"),
        ("batch.size", "-1", "batch.size"),
        ("topic", "", "topic"),
        ("hosts", "", "at least one name or pattern"),
        ("metrics", "", "at least one name or pattern"),
        ("sampler.class", "no path", "Write it as package.module:Class"),
    ],
)
def test_wrong_values_are_named(key: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MetricsConfig.config_def().parse({**FLEET, key: value})
    assert said in str(caught.value) and caught.value.config_path == key


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no.such.module:Sampler", "cannot be loaded"),
        (f"{SAMPLERS}:Missing", "cannot be loaded"),
        (f"{SAMPLERS}:FleetSampler", "cannot be created from this configuration: KeyError"),
    ],
)
def test_sampler_that_cannot_be_opened_is_named(path: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        connector({"topic": "t", "sampler.class": path})
    assert caught.value.config_path == "sampler.class"


def test_offsets_that_somebody_sets_are_checked() -> None:
    made, place = MetricsSourceConnector(), (("host", "a"), ("metric", "m"))

    assert made.alter_offsets({}, {place: {"timestamp": 5}, (("x", 1),): None})
    for partition, offset in (
        ((("host", "a"),), {"timestamp": 5}), (place, {}), (place, {"timestamp": -1}), (place, {"timestamp": True}),
        (place, {"timestamp": "5"}),
    ):  # fmt: skip
        with pytest.raises(ConnectError, match="must have"):
            made.alter_offsets({}, {partition: offset})


def test_connector_is_found_by_its_alias() -> None:
    found = plugins.resolve(plugins.PluginKind.CONNECTOR, "MetricsSource")
    assert plugins.load(found) is MetricsSourceConnector
