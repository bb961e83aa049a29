"""The page about the size of a cluster shows what the kept figures and the planner give."""

from __future__ import annotations

import pytest

from airflow_connect.api.offsets import OffsetRange
from tests.bench import cluster, last_release
from tests.bench.rows import all_rows


def test_tables_of_the_page_follow_from_the_kept_figures_and_the_planner():
    text = cluster.PAGE.read_text("utf-8")

    assert cluster.with_tables(text, last_release.read()) == text
    assert text.count("<!-- table: ") == 3


def test_a_core_that_is_half_as_fast_takes_half_as_many_tasks():
    records = [int(1 / cluster.S_PER_RECORD)] * 30

    result = cluster.run(records, [1.0, 0.5])

    assert result.seconds == pytest.approx(20 * (1 + cluster.TASK_S), rel=0.1)
    assert result.ideal_s == pytest.approx(20, rel=0.01)
    assert result.times_ideal == result.seconds / result.ideal_s


def test_a_run_takes_as_long_as_its_largest_task_if_it_cannot_be_shared():
    ranges = cluster.ranges_of(cluster.one_large(0.1))

    alone = cluster.planned(ranges, 100, may_split=False)
    shared = cluster.planned(ranges, 100, may_split=True)

    assert sum(alone) == sum(shared) == sum(map(len, ranges))
    assert max(alone) == pytest.approx(cluster.BACKLOG / 10, rel=0.01)
    assert max(shared) < 1.2 * cluster.BACKLOG / 100
    assert cluster.run(alone, [1.0] * 100).times_ideal == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("shape", cluster.SKEWS.values(), ids=cluster.SKEWS)
def test_shapes_have_the_whole_backlog(shape):
    total = sum(map(len, cluster.ranges_of(shape)))

    assert cluster.BACKLOG - cluster.PARTITIONS <= total <= cluster.BACKLOG


def test_values_of_a_topic_are_measured():
    sizes = {row.name: cluster.record_bytes(row) for row in all_rows(1000) if row.name in cluster.COUNTED}

    assert sizes["raw-gzip"] == sizes["json-hourly"] == 200
    assert sizes["raw-gzip-2k"] == 2000
    assert 100 < sizes["avro-parquet"] < 200


def test_cores_follow_from_size_and_time():
    figures = last_release.read()
    of_lines = next(line for line in cluster.cores(figures) if line.startswith("| `raw-gzip`"))
    per_hour = 1e12 / 200 / 1e6 * figures["raw-gzip"].cpu / 3600

    assert f"| {per_hour:.1f} |" in of_lines
    assert OffsetRange("events", 0, 0, 5_000_000) in cluster.ranges_of(cluster.even)
