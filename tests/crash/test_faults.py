"""Servers that misbehave in the middle of a run: S3 answers late, wrong, half or never; the broker restarts."""

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.devstack.s3_faults import Fault, Rule, S3FaultProxy
from tests.support.copies.s3 import Sink, numbered
from tests.support.kafka_data import create_topic, produce
from tests.support.steps import HookedEngine, Steps

pytestmark = [pytest.mark.crash, pytest.mark.integration]

OPERATIONS = ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"]
FAULTS = [f for f in Fault if f is not Fault.NONE]


@pytest.fixture
def proxy(s3):
    """A misbehaving way to the S3 server."""
    with S3FaultProxy.start(s3.endpoint_url) as running:
        yield running


@pytest.fixture
def sink(make_topic, produce, make_sink, proxy):
    """A connector with 30 records to copy into 9 files, through the proxy."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    return make_sink(topic, flush_size="4", store_url=proxy.endpoint_url, s3_retry_backoff_ms="1")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower())
def test_s3_that_fails_some_requests_does_not_disturb_the_run(sink, proxy, operation, fault):
    rules = [proxy.add(Rule(fault, operation, skip=skip)) for skip in (1, 3, 5)]

    report = sink.run()

    assert [rule.hits for rule in rules] == [1, 1, 1]
    assert report.records == 30
    sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_s3_that_answers_late_does_not_disturb_the_run(sink, proxy, operation):
    rule = proxy.add(Rule(Fault.NONE, operation, times=3, delay_s=0.3))

    sink.run()

    assert rule.hits == 3
    sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", [Fault.INTERNAL_ERROR, Fault.LOSE_ANSWER], ids=lambda fault: fault.name.lower())
def test_s3_that_fails_for_good_fails_the_run_and_the_next_one_completes_it(sink, proxy, operation, fault):
    proxy.add(Rule(fault, operation, skip=4, times=None))

    failed = sink.try_run()
    visible = sink.identities()
    proxy.clear()
    sink.run()
    sink.run()

    assert failed.error["type"] == "UnavailableError"
    assert failed.error["retriable"] is True
    assert visible.items() <= sink.identities().items()
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_parts_that_are_damaged_for_good_fail_the_run_and_the_next_one_completes_it(sink, proxy):
    proxy.add(Rule(Fault.DAMAGE, "UploadPart", skip=4, times=None))

    failed = sink.try_run()
    visible = sink.identities()
    proxy.clear()
    sink.run()

    assert (failed.error["code"], failed.error["retriable"], visible) == ("s3.damaged", True, {})
    sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.fixture
def own_kafka():
    """A broker that may be restarted."""
    with KafkaBroker.start() as broker:
        yield broker


MOMENTS = [crash_points.BEGUN, crash_points.AUDITED, crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED]


def test_broker_restarted_at_every_step_of_a_run_does_not_disturb_it(own_kafka, s3, bucket, unique_name, monkeypatch):
    """One run after the other, the broker goes away at another step in each."""
    create_topic(own_kafka.bootstrap, unique_name, 3)
    sink = Sink(own_kafka, s3, bucket, f"sink-{unique_name}", unique_name, {"flush.size": "4"}, engine=HookedEngine())
    steps = Steps(monkeypatch)
    written, outcomes = 0, []
    for moment in MOMENTS:
        produce(own_kafka.bootstrap, unique_name, numbered(written, written + 12, 3)[0])
        written += 12
        steps.on(moment, own_kafka.restart)
        report = sink.try_run()
        outcomes.append((moment, report.status, report.error))
        while report.status == "failed" and report.error["retriable"]:
            report = sink.try_run()
        assert report.status in ("done", "empty"), outcomes

    assert sink.run().status == "empty"
    sink.run()
    sink.assert_exactly_once(numbered(0, written)[1])
    assert all(status == "done" for _, status, _ in outcomes), outcomes
