"""Configurations as people have them for Confluent's sink: they validate, run unchanged, and give the same objects."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.runtime.driver.entry import run_connector, validate_connector
from airflow_connect.runtime.spec import RunSpec
from tests.integration.connectors.files.s3.objects import Server, contents, envelope, logical, raw, struct

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent
INTEGRATION = HERE.parents[2]
CONFIGS = INTEGRATION.parent / "data" / "configs"


def instant(text: str) -> int:
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)


CUSTOMER_V1 = struct(
    ("id", "int64"), ("country", "string?"), ("address", struct(("city", "string?"), name="address")), version=1
)
CUSTOMER_V2 = struct(
    ("id", "int64"), ("country", "string?"), ("address", struct(("city", "string?"), name="address")),
    ("vip", "boolean?"), version=2,
)  # fmt: skip
ZURICH, NOWHERE = {"country": "CH", "address": {"city": "Zürich"}}, {"country": None, "address": {"city": "a/b"}}
PAYMENT = struct(("id", "int32"), ("amount", logical("Decimal", "bytes", scale="2")), ("paid_at", "string"))
ROW = struct(("id", "int32"), ("price", logical("Decimal", "bytes", scale="1")))
STARTED, ENDED = struct(("n", "int32"), name="org.Started"), struct(("n", "int32"), name="org.Ended")
SUMMER = instant("2024-07-01T11:30:00+00:00")
HEADERS = [("h", b"1")]

ROWS: dict[str, dict[str, list[tuple[Any, ...]]]] = {
    "quickstart": {"config.orders": [(0, None, json.dumps({"n": n})) for n in range(7)]},
    "clicks-hourly-gzip": {
        "config.clicks": [
            (0, "u", '{"n": 0}', instant("2024-05-06T07:00:00+00:00")),
            (0, "u", '{"n": 1}', instant("2024-05-06T07:09:59.999+00:00")),
            (0, "u", None, instant("2024-05-06T07:10:00+00:00")),
            (0, "u", '{"n": 2}', instant("2024-05-06T07:10:00+00:00")),
            (0, "u", "not json", instant("2024-05-06T07:11:00+00:00")),
            (0, "u", '{"n": 3}', instant("2024-05-06T08:00:00+00:00")),
            (0, "u", '{"n": 4}', instant("2024-05-06T07:59:00+00:00")),
        ]
    },
    "customers-by-field-avro": {
        "config.customers": [
            (0, None, envelope(CUSTOMER_V1, {"id": 0, **ZURICH})),
            (0, None, envelope(CUSTOMER_V2, {"id": 1, "vip": True, **ZURICH})),
            (0, None, envelope(CUSTOMER_V1, {"id": 2, **ZURICH})),
            (0, None, envelope(CUSTOMER_V1, {"id": 3, **NOWHERE})),
        ]
    },
    "payments-daily-parquet": {
        "config.payments": [
            (0, "k", envelope(PAYMENT, {"id": 0, "amount": "AfQ=", "paid_at": "2024-01-01T04:59:59Z"})),
            (0, "k", envelope(PAYMENT, {"id": 1, "amount": "/w==", "paid_at": "2024-01-01T05:00:00.000Z"})),
        ]
    },
    "backup-raw-bytes": {"config.anything": [(0, b"k%d" % n, b"\x00v%d" % n, 0, HEADERS) for n in range(3)]},
    "cdc-with-tombstones": {
        "config.cdc": [
            (0, "a", envelope(ROW, {"id": 1, "price": "Dw=="})), (0, "b", None), (0, "a", None),
            (0, "c", envelope(ROW, {"id": 2, "price": "8Q=="})),
        ]
    },
    "several-event-types": {
        "config.events": [
            (0, None, envelope(STARTED, {"n": 0}), SUMMER), (0, None, envelope(ENDED, {"n": 1}), SUMMER),
            (0, None, envelope(STARTED, {"n": 2}), SUMMER + 3_600_000), (0, None, envelope(ENDED, {"n": 3}), SUMMER),
        ]
    },
    "tuned-live-cluster": {"config.tuned.a": [(0, None, '"a"')], "config.tuned.b": [(0, None, '"b"')]},
}  # fmt: skip

CH, NULL = "country=CH/address.city=Zürich", "country=null/address.city=a%2Fb"
STARTED_DIR, ENDED_DIR = (
    "schema_name=org.Started/year=2024/month=07/day=01",
    "schema_name=org.Ended/year=2024/month=07/day=01",
)
HEADER_LINE = [[{"key": "h", "value": "1"}]]
EXPECTED: dict[str, dict[str, Any]] = {
    "quickstart": {
        f"topics/config.orders/partition=0/config.orders+0+{start:010d}.json": [{"n": n} for n in range(start, end)]
        for start, end in ((0, 3), (3, 6), (6, 7))
    },
    "clicks-hourly-gzip": {
        "raw/clicks/config.clicks/dt=2024-05-06/hr=07/config.clicks+0+0000000000.json.gz": [{"n": 0}, {"n": 1}],
        "raw/clicks/config.clicks/dt=2024-05-06/hr=07/config.clicks+0+0000000003.json.gz": [{"n": 2}],
        "raw/clicks/config.clicks/dt=2024-05-06/hr=08/config.clicks+0+0000000005.json.gz": [{"n": 3}],
        "raw/clicks/config.clicks/dt=2024-05-06/hr=07/config.clicks+0+0000000006.json.gz": [{"n": 4}],
    },
    "customers-by-field-avro": {
        f"topics/config.customers/{CH}/config.customers+0+0000000000.avro": [{"id": 0, **ZURICH}],
        f"topics/config.customers/{CH}/config.customers+0+0000000001.avro": [
            {"id": 1, "vip": True, **ZURICH}, {"id": 2, "vip": None, **ZURICH},
        ],
        f"topics/config.customers/{NULL}/config.customers+0+0000000003.avro": [{"id": 3, **NOWHERE}],
    },
    "backup-raw-bytes": {
        "config.anything/partition=0/config.anything_0_0000000000.raw": b"\x00v0|\x00v1|",
        "config.anything/partition=0/config.anything_0_0000000002.raw": b"\x00v2|",
        "config.anything/partition=0/config.anything_0_0000000000.keys.raw": b"k0|k1|",
        "config.anything/partition=0/config.anything_0_0000000002.keys.raw": b"k2|",
        "config.anything/partition=0/config.anything_0_0000000000.headers.json": HEADER_LINE * 2,
        "config.anything/partition=0/config.anything_0_0000000002.headers.json": HEADER_LINE,
    },
    "cdc-with-tombstones": {
        "topics/config.cdc/partition=0/config.cdc+0+0000000000.json": [
            {"id": 1, "price": 1.5}, {"id": 2, "price": -1.5},
        ],
        "topics/config.cdc/partition=0/config.cdc+0+0000000000.keys.json": ["a", "c"],
        "topics/config.cdc/deleted/config.cdc+0+0000000001.keys.json": ["b", "a"],
    },
    "several-event-types": {
        f"topics/config.events/{STARTED_DIR}/hour=12/config.events+0+0000000000.avro": [{"n": 0}],
        f"topics/config.events/{ENDED_DIR}/hour=12/config.events+0+0000000001.avro": [{"n": 1}, {"n": 3}],
        f"topics/config.events/{STARTED_DIR}/hour=13/config.events+0+0000000002.avro": [{"n": 2}],
    },
    "tuned-live-cluster": {
        f"topics/config.tuned.{name}/partition=0/config.tuned.{name}+0+0000000000.json": [name] for name in "ab"
    },
}  # fmt: skip
IGNORED = {
    "tuned-live-cluster": {
        "tasks.max.enforce", "s3.elastic.buffer.enable", "s3.elastic.buffer.init.capacity", "max.write.duration.ms",
        "s3.http.send.expect.continue", "max.files.scan.limit", "schemas.cache.config", "retry.backoff.ms",
        "shutdown.timeout.ms", "config.action.reload", "confluent.license", "confluent.topic.bootstrap.servers",
        "confluent.topic.replication.factor", "hive.integration",
    }
}  # fmt: skip


def payments() -> dict[str, Any]:
    from decimal import Decimal

    prefix, name = "topics/config.payments/year=", "config.payments+0"
    rows = [
        {"id": 0, "amount": Decimal("5.00"), "paid_at": "2024-01-01T04:59:59Z"},
        {"id": 1, "amount": Decimal("-0.01"), "paid_at": "2024-01-01T05:00:00.000Z"},
    ]
    return {
        f"{prefix}2023/month=12/day=31/{name}+000000000000.snappy.parquet": rows[:1],
        f"{prefix}2024/month=01/day=01/{name}+000000000001.snappy.parquet": rows[1:],
    }


@pytest.mark.parametrize("name", sorted(ROWS))
def test_configuration_runs_unchanged_and_gives_confluents_objects(
    name, kafka, s3, bucket, moto_url, make_topic, produce, make_sink
):
    for topic, rows in ROWS[name].items():
        make_topic(name=topic)
        produce(topic, rows)
    given = json.loads((CONFIGS / f"{name}.json").read_text())
    sink = make_sink("unused")
    if given.get("s3.ssea.name"):  # s3proxy has no encryption
        sink.s3 = s3 = Server(moto_url)
        s3.client().create_bucket(Bucket=bucket)
    filled = {
        **given, "s3.bucket.name": bucket, "store.url": s3.endpoint_url, "aws.access.key.id": s3.access_key,
        "aws.secret.access.key": s3.secret_key,
    }  # fmt: skip
    spec = RunSpec(filled, sink.worker())

    findings = validate_connector(spec)
    report = run_connector(spec, engine=sink.engine)

    assert [f for f in findings if f["level"] != "ignored"] == []
    assert report.status == "done", report.error
    expected = payments() if name == "payments-daily-parquet" else EXPECTED[name]
    texts = {key: rows for key, rows in expected.items() if not isinstance(rows, bytes)}
    assert set(sink.keys()) == set(expected)
    assert {key: raw(sink, key) for key in set(expected) - set(texts)} == {
        key: body for key, body in expected.items() if key not in texts
    }
    assert {key: rows for prefix in texts for key, rows in contents(sink, prefix).items()} == texts
    assert set(report.ignored_keys) == IGNORED.get(name, set())
    assert {f["key"] for f in findings} == IGNORED.get(name, set())


def test_every_key_of_the_sink_is_used_by_a_test_that_runs_it() -> None:
    taking_over = INTEGRATION / "runtime" / "sink" / "recovery" / "test_taking_over.py"
    elsewhere = [*(INTEGRATION / "complete_directories").glob("*.py"), taking_over]
    files = [*HERE.rglob("*.py"), *elsewhere, *CONFIGS.glob("*.json")]
    text = "\n".join(file.read_text() for file in files)
    names = {key.name for key in S3SinkConfig.declared()}

    def is_used(name: str) -> bool:
        argument = name.replace(".", "_")
        return any(form in text for form in (f'"{name}"', f'"{argument}"', f"{argument}="))

    assert {name for name in names if not is_used(name)} == set()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"s3.wan.mode": "true"}, "s3.wan.mode"),
        ({"s3.credentials.provider.sts.base.role.arn": "arn:x"}, "s3.credentials.provider.sts.base.role.arn"),
    ],
)
def test_key_that_cannot_be_followed_is_refused_by_name(make_sink, given, key):
    report = make_sink("nowhere", **given).try_run()

    assert (report.status, report.error["type"], report.error["configPath"]) == ("failed", "ConfigError", key)
