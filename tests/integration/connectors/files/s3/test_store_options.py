"""Objects as the store keeps them: parts, memory, tags, ACL, encryption, conditions, metadata, and nothing else."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.connectors.files.shared.writing import sink_task
from tests.integration.connectors.files.s3.objects import BYTES_CONVERTER, BYTES_FORMAT, Server, contents, raw
from tests.support.copies.s3 import Sink
from tests.support.servers.s3_interceptor import S3Interceptor, error

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[5]


@pytest.fixture
def moto_sink(kafka, moto_url, unique_name, make_topic, produce):
    """A sink of three records whose bucket lies at moto."""
    server = Server(moto_url)
    server.client().create_bucket(Bucket=unique_name)
    topic = make_topic()
    produce(topic, [(0, None, json.dumps(n)) for n in range(3)])

    def make(**given: str) -> Sink:
        return Sink(kafka, server, unique_name, f"sink-{unique_name}", topic, given)  # type: ignore[arg-type]

    return make


def test_objects_larger_than_a_part_are_put_together_in_order(make_topic, produce, make_sink):
    topic = make_topic(config={"max.message.bytes": "2000000"})
    source = random.Random(1)
    values = [source.randbytes(1_000_000) for _ in range(12)]
    produce(topic, [(0, None, value) for value in values], {"message.max.bytes": 2_000_000})
    given = {"format.class": BYTES_FORMAT, "value.converter": BYTES_CONVERTER, "format.bytearray.separator": ""}
    sink = make_sink(topic, **given, **{"s3.part.size": "5242880", "s3.send.digest": "true"})

    sink.run()

    (key,) = sink.keys()
    assert hashlib.sha256(raw(sink, key)).digest() == hashlib.sha256(b"".join(values)).digest()
    assert sink.s3.client().head_object(Bucket=sink.bucket, Key=key)["ETag"].endswith('-3"')


def test_memory_of_5000_open_directories_stays_in_its_budget_and_files_are_the_same() -> None:
    def run(budget_mb: int) -> dict[str, Any]:
        module = "tests.integration.connectors.files.s3.files.many_directories"
        arguments = [sys.executable, "-m", module, str(budget_mb), "5000", "100000"]
        found: dict[str, Any] = json.loads(subprocess.run(arguments, check=True, capture_output=True, cwd=ROOT).stdout)
        return found

    tight, free = run(16), run(4096)

    assert (tight["files"], tight["written"]) == (5000, 100_000)
    assert tight["digest"] == free["digest"]
    assert tight["growth_mb"] < 64 < free["growth_mb"]


def test_files_that_spill_all_the_time_hold_what_was_sent(make_topic, produce, make_sink, monkeypatch):
    opened = sink_task.open_task_plan
    monkeypatch.setattr(
        sink_task, "open_task_plan", lambda *given: dataclasses.replace(opened(*given), memory_budget_bytes=2000)
    )
    topic = make_topic()
    rows = [{"schema": None, "payload": {"n": n, "text": "x" * 300}} for n in range(400)]
    produce(topic, [(0, str(n % 40), json.dumps(row), n % 40 * 3_600_000 + 1) for n, row in enumerate(rows)])
    hourly = {
        "partitioner.class": "HourlyPartitioner", "locale": "en", "timezone": "UTC", "timestamp.extractor": "Record",
        "value.converter": "JsonConverter", "value.converter.schemas.enable": "true",
        "s3.compression.type": "gzip", "store.kafka.keys": "true",
    }  # fmt: skip
    sink = make_sink(topic, **hourly)

    sink.run()

    found = contents(sink)
    assert len(found) == 80
    by_start = {int(key.rpartition("+")[2][:10]): rows for key, rows in found.items() if ".keys." not in key}
    assert by_start == {n: [rows[m]["payload"] for m in range(n, 400, 40)] for n in range(40)}


def test_tags_acl_and_kms_are_on_every_object(moto_sink):
    sink = moto_sink(
        **{
            "s3.object.tagging": "true", "s3.object.tagging.key.value.pairs": "team:data,cost:1:2", "flush.size": "2",
            "s3.acl.canned": "public-read", "s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "key-1",
        }
    )  # fmt: skip

    sink.run()

    client, found = sink.s3.client(), {}
    for key in sink.keys():  # noqa: SIM118 (a sink is no dict)
        place = {"Bucket": sink.bucket, "Key": key}
        found[key[-6:]] = {tag["Key"]: tag["Value"] for tag in client.get_object_tagging(**place)["TagSet"]}
        head = client.head_object(**place)
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "key-1")
        grants = client.get_object_acl(**place)["Grants"]
        assert "READ" in [grant["Permission"] for grant in grants if grant["Grantee"].get("URI")]
    more = {"team": "data", "cost": "1:2"}
    assert found == {
        "0.json": {"startOffset": "0", "endOffset": "1", "recordCount": "2", **more},
        "2.json": {"startOffset": "2", "endOffset": "2", "recordCount": "1", **more},
    }


def test_customer_keys_and_s3_encryption_are_sent_with_the_requests_that_need_them(
    kafka, s3, bucket, make_topic, produce
):
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    key = base64.b64encode(b"k" * 32).decode()
    forward = S3Interceptor(upstream=s3.endpoint_url)

    def keep(seen: Any, ask: Any) -> None:
        operation = seen.method, seen.query.partition("=")[0]
        kept.extend((*operation, n, text) for n, text in seen.headers.items() if "server-side-encryption" in n)

    kept: list[tuple[str, str, str, str]] = []
    forward.rules.append(keep)
    with forward:
        server = dataclasses.replace(Server(forward.url), access_key=s3.access_key, secret_key=s3.secret_key)
        given = {"s3.ssea.name": "AES256", "s3.sse.customer.key": key}
        Sink(kafka, server, bucket, f"sink-{bucket}", topic, given).try_run()  # type: ignore[arg-type]
        customer = set(kept)
        kept.clear()
        Sink(kafka, server, bucket, f"other-{bucket}", topic, {"s3.ssea.name": "AES256"}).try_run()  # type: ignore[arg-type]

    algorithm = "x-amz-server-side-encryption-customer-algorithm"
    assert ("POST", "uploads", algorithm, "AES256") in customer
    assert {name for method, query, name, _ in customer if method == "POST" and query == "uploads"} == {
        algorithm, "x-amz-server-side-encryption-customer-key", "x-amz-server-side-encryption-customer-key-md5",
    }  # fmt: skip
    assert ("POST", "uploads", "x-amz-server-side-encryption", "AES256") in kept


def test_tagging_that_a_store_refuses_is_ignored_or_fails_as_told(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    tagging = {"s3.object.tagging": "true"}  # s3proxy answers 501
    ignoring, failing = make_sink(topic, **tagging), make_sink(topic, **tagging, **{"topics.dir": "failing"})

    ignored = ignoring.run()
    failed = failing.try_run(**{"s3.object.behavior.on.tagging.error": "fail"})
    again = failing.run(**{"s3.object.tagging": "false"})

    assert ignored.records == 1
    assert (failed.status, again.recovered_run_id) == ("failed", failed.run_id)
    assert "PutObjectTagging" in failed.error["message"]
    assert failed.error["code"] == "s3.not_offered"
    assert list(contents(failing).values()) == [[1], [1]]


def test_foreign_object_is_kept_or_replaced_as_told(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    sink = make_sink(topic)
    key = f"topics/{topic}/partition=0/{topic}+0+0000000000.json"
    sink.s3.client().put_object(Bucket=sink.bucket, Key=key, Body=b'"foreign"\n')

    refused = sink.try_run()
    after_refusal = contents(sink)
    replaced = make_sink(topic).try_run(**{"enable.conditional.writes": "false", "delivery.guarantee": "at_least_once"})

    assert refused.status == "failed"
    assert (refused.error["type"], key in refused.error["message"]) == ("PublishConflictError", True)
    assert after_refusal == {key: ["foreign"]}
    assert (replaced.status, contents(sink)) == ("done", {key: [1]})


def test_bucket_in_the_host_name_is_asked_for_through_the_proxy(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    with S3Interceptor(lambda seen, ask: error(403, "AccessDenied")) as proxy:
        sink = make_sink(
            topic,
            **{
                "s3.path.style.access.enabled": "false", "store.url": "http://store.invalid:80",
                "s3.proxy.url": proxy.url, "s3.proxy.user": "user", "s3.proxy.password": "p%40ss",
            },
        )  # fmt: skip
        report = sink.try_run()
        asked = {(seen.headers["host"], seen.path.split("/")[1]) for seen in proxy.seen}
        shown = {seen.headers["proxy-authorization"] for seen in proxy.seen}

    assert (report.status, report.error["code"]) == ("failed", "s3.forbidden")
    assert asked == {(f"{sink.bucket}.store.invalid", "topics")}
    assert shown == {"Basic " + base64.b64encode(b"user:p%40ss").decode()}


def test_objects_carry_their_run_and_offsets_and_the_bucket_holds_nothing_else(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, None, json.dumps(n)) for n in range(4)])
    sink = make_sink(topic)
    report = sink.run()
    produce(topic, [(0, None, "no json")])

    failed = sink.try_run()

    name = f"topics/{topic}/partition"
    assert failed.status == "failed"
    assert sink.keys() == [f"{name}=0/{topic}+0+0000000000.json", f"{name}=1/{topic}+1+0000000000.json"]
    assert sink.uploads() == []
    metadata = sink.s3.client().head_object(Bucket=sink.bucket, Key=sink.keys()[0])["Metadata"]
    assert (metadata["connect-run-id"], metadata["connect-records"]) == (report.run_id, "2")
    assert metadata["connect-offsets"] == "0-2"
