"""Staging on a real server: invisible until published, in parts, spilled, aborted, failing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.s3 import S3Server
from airflow_connect.errors import UnavailableError
from tests.devstack.s3_faults import Fault, Rule, S3FaultProxy, SeenRequest
from tests.integration.stores.conftest import PART_BYTES, Store, identity, store_at
from tests.support.servers.certificates import self_signed, server_context

pytestmark = pytest.mark.integration

Damaging = tuple[Store, S3FaultProxy]


def hold(arrived: threading.Event, released: threading.Event) -> Callable[[SeenRequest], None]:
    """Keep a request at the proxy until `released`; `arrived` tells that it is there."""

    def on_hit(_: SeenRequest) -> None:
        arrived.set()
        released.wait(30)

    return on_hit


@pytest.mark.parametrize("size", [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 7])
def test_stage_any_size_is_invisible_then_complete(store: Store, size: int) -> None:
    data = os.urandom(size)
    files = store.stage("t/a+0+0.json", data=data)
    assert store.objects() == {}
    assert files[0].size_bytes == size
    assert len(files[0].token["parts"]) == max(1, -(-size // PART_BYTES))
    store.publisher().publish(files, lambda _: None)
    assert store.read("t/a+0+0.json") == data
    assert store.uploads() == []


@pytest.mark.parametrize("chunk", [1_000_003, 2 * PART_BYTES + 1])
def test_stage_spilled_between_writes_keeps_order_and_frees_memory(store: Store, chunk: int) -> None:
    data = os.urandom(2 * PART_BYTES + 2 * chunk + 5)
    file = store.make_stager().open(identity("t/k"))
    for start in range(0, len(data), chunk):
        file.write(memoryview(data)[start : start + chunk])
        file.spill()
        assert file.buffered_bytes == 0
    staged = file.close(10, 10).result(30)
    store.publisher().publish([staged], lambda _: None)
    assert store.read("t/k") == data


def test_stage_open_file_costs_no_request_before_a_full_part(faulty_store: Store, faults: S3FaultProxy) -> None:
    file = faulty_store.make_stager().open(identity("t/k"))
    file.write(bytes(PART_BYTES - 1))
    file.spill()
    file.abort()
    assert faults.seen() == []


def test_stage_object_carries_headers_and_identity(store: Store) -> None:
    staged = store.stage("t/ä b+0%2F.json")
    store.publisher().publish(staged, lambda _: None)
    head = store.direct.head_object(Bucket=store.settings.bucket, Key="t/ä b+0%2F.json")
    assert head["ContentType"] == "application/json"
    assert head["Metadata"] == {
        "connect-run-id": "run-1",
        "connect-file-id": staged[0].token["file_id"],
        "connect-offsets": "0-10",
        "connect-records": "10",
    }


def test_stage_many_files_at_once_all_arrive(store: Store) -> None:
    keys = [f"t/p={n % 7}/t+0+{n}.json" for n in range(200)]
    files = store.stage(*keys)
    assert [file.key for file in files] == keys
    store.publisher().publish(files, lambda _: None)
    assert sorted(store.objects()) == sorted(keys)


def test_stage_writer_waits_while_the_queue_is_full(faulty_store: Store, faults: S3FaultProxy) -> None:
    held, released = threading.Event(), threading.Event()
    faults.add(Rule(Fault.NONE, "CreateMultipartUpload", on_hit=hold(held, released)))
    file = faulty_store.make_stager(upload_threads=1, upload_buffer_bytes=2 * PART_BYTES).open(identity("t/k"))
    written: list[int] = []

    def write() -> None:
        for number in range(4):
            file.write(bytes(PART_BYTES))
            written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    assert held.wait(30)
    # Two parts fit into the queue; the third write cannot return before the server goes on.
    writer.join(0.3)
    assert writer.is_alive() and len(written) <= 2
    released.set()
    writer.join(30)
    assert written == [0, 1, 2, 3]
    assert len(file.close(10, 10).result(30).token["parts"]) == 4


@pytest.mark.parametrize("is_closed", [False, True])
def test_abort_removes_the_upload_and_may_be_repeated(store: Store, is_closed: bool) -> None:
    stager = store.make_stager()
    file = stager.open(identity("t/k"))
    file.write(bytes(PART_BYTES + 1))
    if is_closed:
        file.close(10, 10).result(30)
    file.abort()
    file.abort()
    stager.close()
    assert store.uploads() == []


def test_abort_while_parts_are_on_their_way_leaves_nothing(faulty_store: Store, faults: S3FaultProxy) -> None:
    uploading, released = threading.Event(), threading.Event()
    faults.add(Rule(Fault.NONE, "UploadPart", on_hit=hold(uploading, released)))
    stager = faulty_store.make_stager()
    file = stager.open(identity("t/k"))
    file.write(bytes(PART_BYTES))
    future = file.close(10, 10)
    assert uploading.wait(30)
    file.abort()
    released.set()
    stager.close()
    assert future.cancelled()
    assert faulty_store.uploads() == []


def test_aborted_files_cost_no_requests_for_parts_that_are_still_queued(
    faulty_store: Store, faults: S3FaultProxy
) -> None:
    uploading, released = threading.Event(), threading.Event()
    faults.add(Rule(Fault.NONE, "UploadPart", on_hit=hold(uploading, released)))
    stager = faulty_store.make_stager(upload_threads=1)
    files = [stager.open(identity(f"t/k{number}")) for number in range(10)]
    for file in files:
        file.write(b"x")
        file.close(10, 10)
    assert uploading.wait(30)
    for file in files:
        file.abort()
    released.set()
    stager.close()
    assert [seen.operation for seen in faults.seen()] == ["CreateMultipartUpload", "UploadPart", "AbortMultipartUpload"]
    assert faulty_store.uploads() == []


def test_abort_refused_by_the_server_is_logged_not_raised(
    faulty_store: Store, faults: S3FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    faults.add(Rule(Fault.SLOW_DOWN, "AbortMultipartUpload", times=None))
    stager = faulty_store.make_stager()
    file = stager.open(identity("t/k"))
    file.write(bytes(PART_BYTES))
    file.abort()
    stager.close()
    assert "stays until the next sweep" in caplog.text
    assert faulty_store.uploads() == ["t/k"]


def test_write_after_a_failed_part_raises_it(faulty_store: Store, faults: S3FaultProxy) -> None:
    failing = faults.add(Rule(Fault.INTERNAL_ERROR, "UploadPart", times=None))
    stager = faulty_store.make_stager(upload_buffer_bytes=PART_BYTES)
    file = stager.open(identity("t/k"))

    def write_on() -> None:
        for _ in range(5):
            file.write(bytes(PART_BYTES))

    with pytest.raises(UnavailableError, match=r"UploadPart of s3://.*/t/k at .* failed 4 times.*500 InternalError"):
        write_on()
    assert failing.hits == 4
    file.abort()
    stager.close()
    assert faulty_store.uploads() == []


def test_close_with_a_failing_part_fails_its_future_only(faulty_store: Store, faults: S3FaultProxy) -> None:
    faults.add(Rule(Fault.SLOW_DOWN, "UploadPart", lambda seen: seen.key == "t/bad", times=None))
    stager = faulty_store.make_stager()
    futures = {}
    for key in ("t/bad", "t/good"):
        file = stager.open(identity(key))
        file.write(b"x")
        futures[key] = file.close(10, 10)
    with pytest.raises(UnavailableError, match="503 SlowDown"):
        futures["t/bad"].result(30)
    assert futures["t/good"].result(30).key == "t/good"


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        *(("UploadPart", fault) for fault in Fault if fault is not Fault.NONE),
        # This one has no body that could be damaged.
        *(("CreateMultipartUpload", fault) for fault in Fault if fault not in (Fault.NONE, Fault.DAMAGE)),
    ],
)
def test_stage_through_any_fault_is_whole(
    faulty_store: Store, faults: S3FaultProxy, operation: str, fault: Fault
) -> None:
    rule = faults.add(Rule(fault, operation, times=2))
    data = os.urandom(PART_BYTES + 5)
    files = faulty_store.stage("t/k", data=data)
    faulty_store.publisher().publish(files, lambda _: None)
    assert rule.hits == 2
    assert faulty_store.read("t/k") == data


def test_stage_create_whose_reply_was_lost_leaves_one_upload_for_the_sweep(
    faulty_store: Store, faults: S3FaultProxy
) -> None:
    faults.add(Rule(Fault.LOSE_ANSWER, "CreateMultipartUpload"))
    files = faulty_store.stage("t/k")
    publisher = faulty_store.publisher()
    publisher.publish(files, lambda _: None)
    left = list(publisher.list_staged(["t/"]))
    assert [file.key for file in left] == ["t/k"]
    assert publisher.abort(left) == 1
    assert faulty_store.objects() == {"t/k": b"bytes"}


@pytest.fixture
def damaging_store(s3: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Damaging]:
    """The store over TLS that ends at a proxy, which changes bodies behind it when it is told to."""
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with S3FaultProxy.start(s3.endpoint_url, server_context(certificate)) as proxy:
        for made in store_at(s3, bucket, proxy.endpoint_url):
            yield made, proxy


def test_part_damaged_behind_tls_is_refused_by_the_server_and_sent_again(damaging_store: Damaging) -> None:
    store, proxy = damaging_store
    rule = proxy.add(Rule(Fault.DAMAGE, "UploadPart", times=2))
    data = os.urandom(2 * PART_BYTES + 5)
    store.publisher().publish(store.stage("t/k", data=data), lambda _: None)
    assert (rule.hits, store.read("t/k")) == (2, data)
    assert len(proxy.seen("UploadPart")) == 3 + 2


@pytest.mark.parametrize("send_digest", [False, True])
def test_part_damaged_every_time_fails_with_what_happened(damaging_store: Damaging, send_digest: bool) -> None:
    store, proxy = damaging_store
    proxy.add(Rule(Fault.DAMAGE, "UploadPart", times=None))
    with pytest.raises(UnavailableError) as caught:
        store.stage("t/k", send_digest=send_digest)
    assert caught.value.code == "s3.damaged"
    assert "UploadPart of s3://" in caught.value.message
    assert "failed 4 times, because the data was changed on its way to 127.0.0.1" in caught.value.message
    assert caught.value.retriable
    assert store.objects() == {}
