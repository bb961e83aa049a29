"""Publishing on a real server: exactly once whatever is repeated, lost, raced or foreign."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.errors import AccessError, ConfigError, PublishConflictError, UnavailableError
from airflow_connect.stores.s3.publish import S3Publisher
from airflow_connect.stores.s3.settings import S3Credentials
from airflow_connect.stores.store import LeftOver, Outcome
from tests.devstack.s3_faults import Fault, Rule, S3FaultProxy
from tests.integration.stores.conftest import PART_BYTES, Store
from tests.support.servers.s3_interceptor import S3Interceptor, error, times

pytestmark = pytest.mark.integration

BOTH = pytest.mark.parametrize("conditional", [True, False])
VISIBLE = (Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED)


def fingerprint(store: Store, key: str) -> tuple[Any, ...]:
    head = store.direct.head_object(Bucket=store.settings.bucket, Key=key)
    return head["LastModified"], head["ETag"], head["ContentLength"], head["Metadata"]


@BOTH
def test_publish_again_and_late_changes_nothing(store: Store, conditional: bool) -> None:
    files = store.stage("t/a", "t/b", data=os.urandom(PART_BYTES + 1))
    first, zombie = (store.publisher(conditional_writes=conditional) for _ in range(2))
    assert first.publish(files, lambda _: None) == dict.fromkeys(["t/a", "t/b"], Outcome.PUBLISHED)
    before = [fingerprint(store, file.key) for file in files]
    again = zombie.publish(files, lambda _: None)
    assert set(again.values()) <= set(VISIBLE)
    assert [fingerprint(store, file.key) for file in files] == before
    assert store.uploads() == []


@BOTH
def test_publish_by_two_at_once_both_succeed_and_one_object_stands(store: Store, conditional: bool) -> None:
    keys = [f"t/{n}" for n in range(40)]
    files = store.stage(*keys)
    publishers = [store.publisher(conditional_writes=conditional, publish_threads=4) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda each: each.publish(files, lambda _: None), publishers))
    assert all(set(result.values()) <= set(VISIBLE) for result in results)
    assert store.objects() == dict.fromkeys(keys, b"bytes")
    assert store.uploads() == []


def test_publish_two_stagings_of_one_key_at_once_one_wins_the_other_conflicts(store: Store) -> None:
    mine, theirs = store.stage("t/k", data=b"mine"), store.stage("t/k", data=b"their")

    def publish(files: list[Any]) -> str:
        try:
            return store.publisher().publish(files, lambda _: None)["t/k"].value
        except PublishConflictError:
            return "conflict"

    with ThreadPoolExecutor(2) as pool:
        results = sorted(pool.map(publish, [mine, theirs]))
    assert results == ["conflict", "published"]
    assert store.read("t/k") in (b"mine", b"their")


def test_publish_aborted_upload_is_lost_and_the_others_are_not(store: Store) -> None:
    files = store.stage("t/a", "t/b")
    store.publisher().abort(files[:1])
    outcomes = store.publisher().publish(files, lambda _: None)
    assert outcomes == {"t/a": Outcome.LOST, "t/b": Outcome.PUBLISHED}
    again = store.stage("t/a")
    assert store.publisher().publish(again, lambda _: None) == {"t/a": Outcome.PUBLISHED}


def test_publish_over_a_foreign_object_keeps_it(store: Store) -> None:
    store.direct.put_object(Bucket=store.settings.bucket, Key="t/a", Body=b"foreign")
    files = store.stage("t/a", "t/b")
    with pytest.raises(PublishConflictError, match=r"s3://.*/t/a holds an object of another"):
        store.publisher().publish(files, lambda _: None)
    assert store.objects() == {"t/a": b"foreign", "t/b": b"bytes"}
    # As the message says: move it away, and the same manifest goes through.
    store.direct.delete_object(Bucket=store.settings.bucket, Key="t/a")
    store.publisher().publish(files, lambda _: None)
    assert store.objects() == {"t/a": b"bytes", "t/b": b"bytes"}


def put_foreign(store: Store, key: str = "t/a", body: bytes = b"foreign") -> None:
    store.direct.put_object(Bucket=store.settings.bucket, Key=key, Body=body)


def test_replace_overwrites_foreign_objects_and_keeps_ours(store: Store) -> None:
    put_foreign(store)
    earlier = store.stage("t/b", data=b"of an earlier run")
    store.publisher().publish(earlier, lambda _: None)
    files = store.stage("t/a", "t/b", "t/c")
    publisher = store.publisher(replace_foreign=True)
    with pytest.raises(PublishConflictError, match="t/b holds another object of airflow_connect"):
        publisher.publish(files, lambda _: None)
    assert store.objects() == {"t/a": b"bytes", "t/b": b"of an earlier run", "t/c": b"bytes"}
    assert publisher.replaced == ["t/a"]


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE], ids=lambda f: f.name)
def test_replace_through_any_fault_is_done_once(faulty_store: Store, faults: S3FaultProxy, fault: Fault) -> None:
    put_foreign(faulty_store)
    files = faulty_store.stage("t/a")
    rule = faults.add(Rule(fault, "CompleteMultipartUpload", skip=1, times=2))
    outcomes = faulty_store.publisher(replace_foreign=True).publish(files, lambda _: None)
    assert rule.hits == 2
    assert set(outcomes.values()) <= set(VISIBLE)
    assert (faulty_store.objects(), faulty_store.uploads()) == ({"t/a": b"bytes"}, [])


def test_replace_never_takes_what_appears_after_the_look(faulty_store: Store, faults: S3FaultProxy) -> None:
    put_foreign(faulty_store)
    files = faulty_store.stage("t/a")
    late = Rule(Fault.NONE, "CompleteMultipartUpload", skip=1, on_hit=lambda _: put_foreign(faulty_store, body=b"new"))
    faults.add(late)
    with pytest.raises(PublishConflictError, match="is being written right now"):
        faulty_store.publisher(replace_foreign=True).publish(files, lambda _: None)
    assert (late.hits, faulty_store.objects()) == (1, {"t/a": b"new"})
    # When its writer has stopped, the same manifest goes through.
    faulty_store.publisher(replace_foreign=True).publish(files, lambda _: None)
    assert faulty_store.objects() == {"t/a": b"bytes"}


def test_publish_unconditional_overwrites_a_foreign_object(store: Store) -> None:
    store.direct.put_object(Bucket=store.settings.bucket, Key="t/a", Body=b"foreign")
    store.publisher(conditional_writes=False).publish(store.stage("t/a"), lambda _: None)
    assert store.objects() == {"t/a": b"bytes"}


def test_publish_equal_bytes_of_another_staging_is_already_published(store: Store) -> None:
    first, second = store.stage("t/k"), store.stage("t/k")
    store.publisher().publish(first, lambda _: None)
    assert store.publisher().publish(second, lambda _: None) == {"t/k": Outcome.ALREADY_PUBLISHED}
    assert store.uploads() == []


@BOTH
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE], ids=lambda f: f.name)
def test_publish_through_any_fault_is_done_once(
    faulty_store: Store, faults: S3FaultProxy, fault: Fault, conditional: bool
) -> None:
    files = faulty_store.stage("t/a", "t/b")
    rule = faults.add(Rule(fault, "CompleteMultipartUpload", times=3))
    outcomes = faulty_store.publisher(conditional_writes=conditional).publish(files, lambda _: None)
    assert rule.hits == 3
    assert set(outcomes.values()) <= set(VISIBLE)
    assert faulty_store.objects() == {"t/a": b"bytes", "t/b": b"bytes"}
    assert faulty_store.uploads() == []


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.DROP, Fault.CUT_ANSWER], ids=lambda f: f.name)
def test_publish_look_after_a_conflict_survives_faults(faulty_store: Store, faults: S3FaultProxy, fault: Fault) -> None:
    faulty_store.publisher().publish(faulty_store.stage("t/k"), lambda _: None)
    rule = faults.add(Rule(fault, "HeadObject", times=2))
    outcomes = faulty_store.publisher().publish(faulty_store.stage("t/k"), lambda _: None)
    assert (outcomes, rule.hits) == ({"t/k": Outcome.ALREADY_PUBLISHED}, 2)


def test_publish_store_away_stops_and_goes_on_later(faulty_store: Store, faults: S3FaultProxy) -> None:
    files = faulty_store.stage(*(f"t/{n}" for n in range(30)))
    faults.add(Rule(Fault.SLOW_DOWN, "CompleteMultipartUpload", skip=10, times=None))
    with pytest.raises(UnavailableError, match="CompleteMultipartUpload"):
        faulty_store.publisher(publish_threads=2).publish(files, lambda _: None)
    assert len(faulty_store.objects()) == 10
    faults.clear()
    faulty_store.publisher().publish(files, lambda _: None)
    assert len(faulty_store.objects()) == 30


def test_publish_reports_progress_to_the_end(store: Store) -> None:
    done: list[int] = []
    store.publisher().publish(store.stage("t/a", "t/b", "t/c"), done.append)
    assert done == [1, 2, 3]


def test_publish_server_that_does_not_know_conditions_is_looked_at_first(store: Store) -> None:
    files = store.stage("t/a", "t/b")
    store.direct.put_object(Bucket=store.settings.bucket, Key="t/a", Body=b"foreign")
    refused = times(1, error(501, "NotImplemented"), method="POST")
    with S3Interceptor(refused, upstream=store.settings.endpoint) as server:
        publisher = store.publisher(endpoint=server.url, publish_threads=1)
        with pytest.raises(PublishConflictError):
            publisher.publish(files, lambda _: None)
    assert store.objects() == {"t/a": b"foreign", "t/b": b"bytes"}


def test_abort_is_idempotent_and_spares_what_is_published(store: Store) -> None:
    published, left = store.stage("t/a"), store.stage("t/b", "t/c")
    publisher = store.publisher()
    publisher.publish(published, lambda _: None)
    assert publisher.abort([*published, *left]) == 2
    assert publisher.abort([*published, *left]) == 0
    assert store.objects() == {"t/a": b"bytes"}


def test_list_staged_finds_prefixes_once_and_pages(store: Store) -> None:
    store.stage("t/a", "t/b", "t2/a", "u/a")
    publisher = store.publisher()
    found = list(publisher.list_staged(["t/", "t/a", "u/"]))
    assert sorted(file.key for file in found) == ["t/a", "t/b", "u/a"]
    assert all(file.started_ms > 0 for file in found)
    assert publisher.abort(found) == 3
    assert store.uploads() == ["t2/a"]


def test_preflight_on_a_good_bucket_leaves_nothing(faulty_store: Store, faults: S3FaultProxy) -> None:
    faulty_store.publisher().preflight()
    assert len(faults.seen()) == 5
    assert (faulty_store.objects(), faulty_store.uploads()) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bucket": "no-such-bucket"}, "Create bucket no-such-bucket"),
        ({"credentials": S3Credentials("test", "wrong-secret")}, "Correct the access key"),
        ({"credentials": S3Credentials("nobody", "wrong-secret")}, "Correct the access key|Grant s3:PutObject"),
    ],
)
def test_preflight_says_what_is_wrong(store: Store, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AccessError, match=words) as caught:
        store.publisher(**changes).preflight()
    assert "wrong-secret" not in str(caught.value)


def test_staged_file_published_from_its_json_form(store: Store) -> None:
    files = store.stage("t/k")
    copies = [type(file).from_json(file.to_json()) for file in files]
    assert store.publisher().publish(copies, lambda _: None) == {"t/k": Outcome.PUBLISHED}
    assert replace(copies[0]) == files[0]


def test_left_over_of_a_staged_file_names_its_upload(store: Store) -> None:
    files = store.stage("t/k")
    found = list(store.publisher().list_staged(["t/"]))
    assert found == [LeftOver("t/k", {"upload_id": files[0].token["upload_id"]}, found[0].started_ms)]


@pytest.mark.parametrize("prefix", ["raw//", "/raw/", "a//b/", "raw/./"])
def test_preflight_prefix_that_the_store_folds_is_refused(store: Store, prefix: str) -> None:
    with pytest.raises(ConfigError, match="does not keep such a name as it is") as caught:
        S3Publisher(store.settings, prefix).preflight()
    assert (caught.value.code, caught.value.config_path) == ("s3.odd_name", "topics.dir")
    assert store.uploads() == []


def test_stage_key_that_the_store_folds_is_refused_before_the_manifest(store: Store) -> None:
    # Such as path.format=YYYY//MM, or a partitioner of one's own: no preflight knows the name.
    with pytest.raises(ConfigError, match="'t/2024//05/k' has a directory that is empty") as caught:
        store.stage("t/2024//05/k")
    assert "path.format" in caught.value.suggestion
