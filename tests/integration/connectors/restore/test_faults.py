"""A store that fails, slows down and cuts its answers: what is restored is exact, or the run fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.connectors.restore.read import opening
from tests.devstack.s3_faults import Fault, Rule, S3FaultProxy
from tests.integration.connectors.files.s3.objects import PARQUET_FORMAT
from tests.support.copies.backups import TIME_MS
from tests.support.copies.restore import restore_of, stored
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, Seen, error

pytestmark = pytest.mark.integration
FAULTS = [Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.DROP, Fault.CUT_ANSWER]


@pytest.fixture
def sink(make_topic: Any, produce: Any, make_sink: Any) -> Any:
    topic = make_topic(2)
    produce(topic, [(n % 2, f"{n}", f"value {n}", TIME_MS + n, []) for n in range(40)])
    sink = make_sink(topic, **{"store.kafka.records": "true", "flush.size": "3", "format.class": PARQUET_FORMAT})
    sink.run()
    return sink


@pytest.mark.parametrize("whole", [0, 1 << 20], ids=["ranges", "whole"])
def test_faults_of_the_store_neither_lose_nor_repeat_records(
    kafka: Any, s3: Any, sink: Any, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr(opening, "WHOLE_BYTES", whole)
    with S3FaultProxy.start(s3.endpoint_url) as proxy:
        for number, fault in enumerate(FAULTS):
            proxy.add(Rule(fault, "GetObject", skip=2 * number, times=1))
        config = {"store.url": proxy.endpoint_url, "s3.retry.backoff.ms": "1"}
        restore = restore_of(sink, f"{sink.topic}-restored", **config)
        restore.run()
        asked = len(proxy.seen("GetObject"))
    assert asked > 2 * len(FAULTS)
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, sink.topic)


def test_poll_is_repeated_when_retries_of_a_request_are_used_up(kafka: Any, s3: Any, sink: Any) -> None:
    with S3FaultProxy.start(s3.endpoint_url) as proxy:
        config = {"store.url": proxy.endpoint_url, "s3.part.retries": "0"}
        restore = restore_of(sink, f"{sink.topic}-restored", **config)
        # The driver opens the first file of both partitions; then a task has read one file.
        rule = proxy.add(Rule(Fault.INTERNAL_ERROR, "GetObject", skip=3, times=2))
        restore.run()
    assert rule.hits == 2
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, sink.topic)


def test_store_that_is_away_when_a_run_is_planned_fails_it_and_the_next_one_begins(
    kafka: Any, s3: Any, sink: Any
) -> None:
    with S3FaultProxy.start(s3.endpoint_url) as proxy:
        restore = restore_of(
            sink, f"{sink.topic}-restored", **{"store.url": proxy.endpoint_url, "s3.part.retries": "0"}
        )
        proxy.add(Rule(Fault.DROP, "GetObject", skip=1))
        report = restore.try_run()
        assert report.status == "failed" and report.error is not None and report.error["retriable"]
        assert restore.offsets() == {}
        restore.run()
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, sink.topic)


@pytest.mark.parametrize("token", ["", "<NextContinuationToken>same</NextContinuationToken>"])
def test_listing_that_does_not_go_on_is_no_complete_one(s3: Any, sink: Any, token: str) -> None:
    def truncate(request: Seen, ask: Callable[[], Answer]) -> Answer | None:
        if "list-type=2" not in request.query:
            return None
        found = ask()
        body = re.sub(
            rb"<IsTruncated>.*?</IsTruncated>", b"<IsTruncated>true</IsTruncated>" + token.encode(), found.body
        )
        return replace(found, body=body, headers={})

    with S3Interceptor(truncate, upstream=s3.endpoint_url) as server:
        restore = restore_of(sink, f"{sink.topic}-restored", **{"store.url": server.url})
        report = restore.try_run()
    assert report.status == "failed" and report.error is not None
    assert report.error["code"] == "s3.listing" and "the listing is not complete" in str(report.error["message"])


ARCHIVED = error(403, "InvalidObjectState")


def test_object_in_an_archive_leaves_out_its_partition_and_no_other(kafka: Any, s3: Any, sink: Any) -> None:
    def refuse(request: Seen, _: Callable[[], Answer]) -> Answer | None:
        is_archived = f"{sink.topic}%2B0%2B0000000003" in request.path or f"{sink.topic}+0+0000000003" in request.path
        return ARCHIVED if request.method == "GET" and is_archived else None

    with S3Interceptor(refuse, upstream=s3.endpoint_url) as server:
        restore = restore_of(sink, f"{sink.topic}-restored", **{"store.url": server.url})
        report = restore.try_run()
        assert report.status == "failed" and report.error is not None
        assert "is in an archive" in str(report.error["message"])
        assert len([one for one in stored(kafka.bootstrap, restore.target) if one.partition == 1]) == 20
        server.rules.clear()
        restore.run()
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, sink.topic)
