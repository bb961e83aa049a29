"""What `lint` says of configurations that make small files, or metadata that only grows."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.observe.inspecting.lint_lake import Found, advice

DELETES = "iceberg.tables.auto-create-props.write.metadata.delete-after-commit.enabled"
PARTITION_BY = "iceberg.tables.default-partition-by"
HOUR_MS = 3_600_000


def found(partitions: int = 2, runs: list[dict[str, Any]] | None = None, **more: str) -> list[Found]:
    config = {
        "name": "c",
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "orders",
        "iceberg.tables": "sales.orders",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": "http://localhost",
        **more,
    }
    return list(advice(IcebergConfig.from_config(config), partitions, runs or []))


def run(number: int, files: int, file_bytes: int, of: str = "") -> dict[str, Any]:
    """A run of each hour, the newest first."""
    run_id = f"r{number}"
    table = {"table": "sales.orders", "run_id": of or run_id, "files": files, "size_bytes": files * file_bytes}
    started_ms = (1000 - number) * HOUR_MS
    return {"run_id": run_id, "files": files, "tables": [table], "started_ms": started_ms, "ended_ms": started_ms}


def test_many_buckets_are_a_warning_before_the_first_run() -> None:
    (one,) = found(**{PARTITION_BY: "day(at), bucket(customer, 64), bucket(shop, 8)"})
    assert one.about == PARTITION_BY
    assert "may add 1,024 files to table sales.orders: 2 partitions of topics times 512 buckets" in one.found
    assert "about 16 buckets" in one.to_do
    (of_table,) = found(**{"iceberg.table.orders.partition-by": "bucket(customer, 512)", PARTITION_BY: "day(at)"})
    assert of_table.about == "iceberg.table.orders.partition-by"
    (dynamic,) = found(
        **{
            "iceberg.tables": "", "iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "t",
            PARTITION_BY: "bucket(customer, 512)",
        }
    )  # fmt: skip
    assert "to each table" in dynamic.found


@pytest.mark.parametrize("text", ["", "day(at)", "bucket(customer, 16)", "truncate(name, 512)", "customer"])
def test_partitionings_that_may_be_fine_are_no_warning(text: str) -> None:
    assert found(**{PARTITION_BY: text}) == []


def test_files_of_the_last_runs_say_more_than_a_forecast() -> None:
    buckets = {PARTITION_BY: "bucket(customer, 512)"}
    (small,) = found(runs=[run(n, 1000, 12_000) for n in range(10)], **buckets)
    assert small.about == PARTITION_BY
    assert small.found == (
        "The last 10 runs added 10,000 files of 12.0 kB on average to table sales.orders, 10,000 files a day."
    )
    assert found(runs=[run(n, 1000, 20 << 20) for n in range(10)], **buckets) == []
    assert found(runs=[run(n, 10, 12_000) for n in range(10)], **buckets) == []
    # What a run has finished is in the history by itself.
    assert found(runs=[run(0, 1000, 12_000, of="r1"), run(1, 10, 12_000)], **buckets) == []
    # Entries of runs that found nothing have no tables.
    assert len(found(runs=[{"run_id": "r", "files": 0, "started_ms": 0, "ended_ms": 0}], **buckets)) == 1


@pytest.mark.parametrize(
    "prefix", ["iceberg.tables.write-props.", "iceberg.table.write-props.", "iceberg.tables.auto-create-props."]
)
def test_tiny_target_is_a_warning(prefix: str) -> None:
    key = f"{prefix}write.target-file-size-bytes"
    (tiny,) = found(**{key: "1048576"})
    assert (tiny.about, "at 1,048,576 bytes" in tiny.found) == (key, True)
    assert found(**{key: str(128 << 20)}) == []


def test_metadata_that_nobody_deletes_is_a_warning_for_tables_that_the_connector_creates() -> None:
    creates = {"iceberg.tables.auto-create-enabled": "true"}
    (grows,) = found(**creates)
    assert grows.about == DELETES
    assert found(**creates, **{DELETES: "true"}) == found() == []
    assert len(found(**creates, **{DELETES: "false"})) == 1
