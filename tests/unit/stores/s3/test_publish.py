"""What the publisher makes of answers that a healthy server does not give."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import AccessError, ConnectError, PublishConflictError, UnavailableError
from airflow_connect.stores.s3.etag import multipart_etag
from airflow_connect.stores.s3.http.errors import HttpResponse
from airflow_connect.stores.s3.publish import S3Publisher
from airflow_connect.stores.store import LeftOver, Outcome
from tests.support.servers.s3_interceptor import Answer, Dropped, Rule, S3Interceptor, error, times
from tests.unit.stores.s3.s3_clients import settings, staged, transport

DONE = Answer(200, b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>")
OURS = Answer(200, headers={"etag": '"kms"', "content-length": "10", "x-amz-meta-connect-file-id": "f-t/k"})
SAME_ETAG = multipart_etag([etag for _, etag in staged().token["parts"]])
SAME_BYTES = Answer(200, headers={"etag": f'"{SAME_ETAG}"', "content-length": "10"})
FOREIGN = Answer(200, headers={"etag": '"other"', "content-length": "10"})
ABSENT = Answer(404)
NO_KEY = error(404, "NoSuchKey")
PAGE = Answer(404, b"default backend - 404")
PRECONDITION = error(412, "PreconditionFailed")
GONE = error(404, "NoSuchUpload")


def publisher(server: S3Interceptor, **changes: Any) -> S3Publisher:
    return S3Publisher(settings(server.url, **changes), "t/", transport(server.url, **changes))


def outcome(*rules: Rule, **changes: Any) -> tuple[Outcome, list[str]]:
    """Outcome of publishing one file, and the methods of the requests that it took."""
    with S3Interceptor(*rules, times(99, NO_KEY, method="GET")) as server:
        found = publisher(server, **changes).publish([staged()], lambda _: None)
    return found["t/k"], [seen.method for seen in server.seen]


@pytest.mark.parametrize(
    ("complete", "head", "expected"),
    [
        (DONE, ABSENT, Outcome.PUBLISHED),
        (PRECONDITION, OURS, Outcome.ALREADY_PUBLISHED),
        (error(200, "PreconditionFailed"), OURS, Outcome.ALREADY_PUBLISHED),
        (error(409, "ConditionalRequestConflict"), OURS, Outcome.ALREADY_PUBLISHED),
        (GONE, OURS, Outcome.ALREADY_PUBLISHED),
        (GONE, ABSENT, Outcome.LOST),
        (error(404, "NoSuchKey"), OURS, Outcome.ALREADY_PUBLISHED),
        (error(400, "InvalidPart"), ABSENT, Outcome.LOST),
    ],
)
def test_publish_one_answer_gives_outcome(complete: Answer, head: Answer, expected: Outcome) -> None:
    assert outcome(times(9, complete, method="POST"), times(9, head, method="HEAD"))[0] is expected


@pytest.mark.parametrize("answer", [PRECONDITION, GONE, error(409, "ConditionalRequestConflict")])
@pytest.mark.parametrize("conditional", [True, False])
def test_publish_over_a_foreign_object_names_the_key_and_the_setting(answer: Answer, conditional: bool) -> None:
    if not conditional and answer is not GONE:
        answer = GONE  # Without conditions nothing else asks for a look.
    with pytest.raises(PublishConflictError) as caught:
        outcome(times(9, answer, method="POST"), times(9, FOREIGN, method="HEAD"), conditional_writes=conditional)
    text = str(caught.value)
    assert "s3://bucket/t/k holds an object of another program" in text and "t-0[0, 10)" in text
    assert "run once with behavior.on.foreign.objects=replace" in text and "move it away" in text
    assert caught.value.config_path == "behavior.on.foreign.objects"


def replaced(*rules: Rule, **changes: Any) -> tuple[Outcome, list[str], list[tuple[str | None, str | None]]]:
    """Outcome of publishing one file where foreign objects are replaced, what was, and each Complete's conditions."""
    with S3Interceptor(times(99, NO_KEY, method="GET"), *rules) as server:
        made = publisher(server, replace_foreign=True, **changes)
        found = made.publish([staged()], lambda _: None)
    headers = [seen.headers for seen in server.seen if seen.method == "POST"]
    return found["t/k"], made.replaced, [(each.get("if-none-match"), each.get("if-match")) for each in headers]


def test_replace_overwrites_only_the_object_that_was_looked_at() -> None:
    rules = [times(1, PRECONDITION), times(1, FOREIGN), times(1, DONE)]
    assert replaced(*rules) == (Outcome.PUBLISHED, ["t/k"], [("*", None), (None, '"other"')])


def test_replace_whose_answer_was_lost_finds_its_own_object() -> None:
    rules = [times(1, PRECONDITION), times(1, FOREIGN), times(1, Dropped), times(1, PRECONDITION), times(1, OURS)]
    conditions = [("*", None), (None, '"other"'), (None, '"other"')]
    assert replaced(*rules) == (Outcome.ALREADY_PUBLISHED, [], conditions)


@pytest.mark.parametrize("gone", [error(404, "NoSuchKey"), PRECONDITION])
def test_replace_of_an_object_that_has_gone_publishes_where_nothing_stands(gone: Answer) -> None:
    rules = [times(1, PRECONDITION), times(1, FOREIGN), times(1, gone), times(1, ABSENT), times(1, DONE)]
    assert replaced(*rules) == (Outcome.PUBLISHED, [], [("*", None), (None, '"other"'), ("*", None)])


def test_replace_upload_gone_is_lost_while_the_foreign_object_stands() -> None:
    rules = [times(1, PRECONDITION), times(9, FOREIGN, method="HEAD"), times(9, GONE, method="POST")]
    assert replaced(*rules)[:2] == (Outcome.LOST, [])


def test_replace_object_that_changes_between_look_and_write_stays() -> None:
    newer = Answer(200, headers={"etag": '"newer"', "content-length": "11"})
    rules = [times(1, PRECONDITION), times(1, FOREIGN), times(1, PRECONDITION), times(9, newer)]
    with pytest.raises(PublishConflictError) as caught:
        replaced(*rules)
    assert "is being written right now (11 bytes, ETag newer; it had ETag other a moment ago)" in str(caught.value)
    assert "Stop the program that writes it" in str(caught.value)


@pytest.mark.parametrize("replace_foreign", [True, False])
def test_object_of_another_run_of_ours_is_never_replaced(replace_foreign: bool) -> None:
    metadata = {"connect-file-id": "f-of-another", "connect-run-id": "r7", "connect-offsets": "0-9"}
    headers = {
        "etag": '"o"',
        "content-length": "9",
        **{f"x-amz-meta-{name}": value for name, value in metadata.items()},
    }
    with S3Interceptor(times(1, PRECONDITION), times(9, Answer(200, headers=headers))) as server:
        with pytest.raises(PublishConflictError) as caught:
            publisher(server, replace_foreign=replace_foreign).publish([staged()], lambda _: None)
        assert [seen.method for seen in server.seen] == ["POST", "HEAD"]
    assert "another object of airflow_connect (run r7, offsets 0-9)" in str(caught.value)
    assert "It is never replaced." in str(caught.value) and caught.value.config_path == ""


def test_replace_at_a_server_without_conditions_looks_and_overwrites() -> None:
    rules = [times(1, error(501, "NotImplemented")), times(1, FOREIGN), times(1, DONE)]
    assert replaced(*rules) == (Outcome.PUBLISHED, ["t/k"], [("*", None), (None, None)])


def test_publish_upload_gone_is_looked_for_again_before_it_is_lost() -> None:
    # Another publisher is completing the upload at this very moment.
    found, methods = outcome(
        times(9, GONE, method="POST"), times(1, ABSENT, method="HEAD"), times(1, OURS, method="HEAD")
    )
    assert (found, methods) == (Outcome.ALREADY_PUBLISHED, ["POST", "HEAD", "GET", "POST", "HEAD"])


@pytest.mark.parametrize("gone", [PAGE, ABSENT, error(404, "")])
def test_publish_404_of_a_proxy_is_refused_not_lost(gone: Answer) -> None:
    with pytest.raises(UnavailableError, match="other than the store has answered") as caught:
        outcome(times(99, gone, method="POST"))
    assert (caught.value.code, caught.value.config_path) == ("s3.answer", "store.url")


def test_publish_404_of_a_proxy_to_head_is_no_missing_object() -> None:
    # Without conditional writes, the object would be overwritten.
    refused = times(1, error(501, "NotImplemented"), method="POST")
    rules = [refused, times(9, ABSENT, method="HEAD"), times(9, PAGE, method="GET"), times(9, DONE)]
    with (
        S3Interceptor(*rules) as server,
        pytest.raises(UnavailableError, match="GetObject of s3://bucket/t/k was answered with status 404"),
    ):
        publisher(server).publish([staged()], lambda _: None)
    assert [seen.method for seen in server.seen] == ["POST", "HEAD", "GET"]


@pytest.mark.parametrize("there", [Answer(206, b"x"), error(416, "InvalidRange")])
def test_publish_object_that_appears_after_head_is_looked_at_again(there: Answer) -> None:
    rules = [
        times(1, PRECONDITION, method="POST"),
        times(1, ABSENT, method="HEAD"),
        times(1, there, method="GET"),
        times(1, OURS, method="HEAD"),
    ]
    assert outcome(*rules) == (Outcome.ALREADY_PUBLISHED, ["POST", "HEAD", "GET", "HEAD"])


def test_publish_bucket_gone_is_refused_not_lost() -> None:
    with pytest.raises(AccessError, match="Create bucket"):
        outcome(times(9, error(404, "NoSuchBucket")))


def test_publish_late_failure_inside_a_200_is_tried_again() -> None:
    found, methods = outcome(times(2, error(200, "InternalError")), times(1, DONE))
    assert (found, methods) == (Outcome.PUBLISHED, ["POST"] * 3)


@pytest.mark.parametrize("body", [b"", b"<CompleteMultipart", b"<html></html>"])
def test_publish_200_without_result_is_not_believed(body: bytes) -> None:
    found, methods = outcome(times(1, Answer(200, body)), times(1, DONE))
    assert (found, methods) == (Outcome.PUBLISHED, ["POST", "POST"])


def test_publish_unavailable_is_more_stubborn_than_the_part_retries() -> None:
    found, methods = outcome(times(8, error(503, "SlowDown")), times(1, DONE), part_retries=0)
    assert (found, len(methods)) == (Outcome.PUBLISHED, 9)


def test_publish_conflicting_writers_that_leave_nothing_end_as_unavailable() -> None:
    busy = error(409, "ConditionalRequestConflict")
    with pytest.raises(UnavailableError, match="409 ConditionalRequestConflict"):
        outcome(times(99, busy, method="POST"), times(99, ABSENT, method="HEAD"))


def test_publish_server_without_conditional_writes_looks_first() -> None:
    refused = times(1, error(501, "NotImplemented"), method="POST")
    found, methods = outcome(refused, times(1, ABSENT, method="HEAD"), times(1, DONE, method="POST"))
    assert (found, methods) == (Outcome.PUBLISHED, ["POST", "HEAD", "GET", "POST"])


def test_publish_server_without_conditional_writes_is_asked_once() -> None:
    no_key = times(9, NO_KEY, method="GET")
    rules = [times(1, error(501, "NotImplemented")), times(9, ABSENT, method="HEAD"), no_key, times(9, DONE)]
    with S3Interceptor(*rules) as server:
        store = publisher(server, publish_threads=1)
        store.publish([staged("a"), staged("b")], lambda _: None)
    conditions = [seen.headers.get("if-none-match") for seen in server.seen if seen.method == "POST"]
    assert conditions == ["*", None, None]


def test_publish_unconditional_sends_no_condition() -> None:
    with S3Interceptor(times(1, DONE)) as server:
        publisher(server, conditional_writes=False).publish([staged()], lambda _: None)
    assert "if-none-match" not in server.seen[0].headers


def test_publish_head_forbidden_names_the_permission_that_tells_absent_from_forbidden() -> None:
    with pytest.raises(AccessError, match="s3:ListBucket"):
        outcome(times(9, GONE, method="POST"), times(9, Answer(403), method="HEAD"))


def test_publish_same_bytes_by_another_upload_discards_ours() -> None:
    found, methods = outcome(
        times(1, PRECONDITION, method="POST"),
        times(1, SAME_BYTES, method="HEAD"),
        times(1, Answer(204), method="DELETE"),
    )
    assert (found, methods) == (Outcome.ALREADY_PUBLISHED, ["POST", "HEAD", "DELETE"])


def test_publish_conflict_of_one_publishes_the_others_and_counts() -> None:
    stranger = times(9, FOREIGN, method="HEAD")
    done: list[int] = []
    with S3Interceptor(times(2, PRECONDITION, method="POST"), stranger, times(9, DONE)) as server:
        files = [staged(name) for name in ("a", "b", "c")]
        with pytest.raises(PublishConflictError, match="2 keys hold other objects"):
            publisher(server, publish_threads=1).publish(files, done.append)
    assert len([seen for seen in server.seen if seen.method == "POST"]) == 3
    assert done == [1, 2, 3]


def test_publish_two_files_of_one_key_sends_nothing() -> None:
    with S3Interceptor() as server, pytest.raises(PublishConflictError, match="Two staged files"):
        publisher(server).publish([staged(), staged()], lambda _: None)
    assert server.seen == []


def test_publish_tags_carry_inclusive_end_and_extra_tags() -> None:
    extra = (("team", "a&b"),)
    with S3Interceptor(times(1, DONE, method="POST")) as server:
        publisher(server, object_tagging=True, extra_tags=extra).publish([staged()], lambda _: None)
    body = server.seen[1].body.decode()
    assert (server.seen[1].method, server.seen[1].query) == ("PUT", "tagging=")
    assert "<Key>endOffset</Key><Value>9</Value>" in body
    assert "<Key>startOffset</Key><Value>0</Value>" in body
    assert "<Key>recordCount</Key><Value>10</Value>" in body
    assert "<Key>team</Key><Value>a&amp;b</Value>" in body


@pytest.mark.parametrize("fail", [False, True])
def test_publish_tagging_refused_is_ignored_or_fails(fail: bool, caplog: pytest.LogCaptureFixture) -> None:
    rules = [times(1, DONE, method="POST"), times(1, error(501, "NotImplemented"), method="PUT")]
    with S3Interceptor(*rules) as server:
        store = publisher(server, object_tagging=True, fail_on_tagging_error=fail)
        if fail:
            with pytest.raises(ConnectError, match="PutObjectTagging"):
                store.publish([staged()], lambda _: None)
        else:
            with caplog.at_level(logging.WARNING):
                assert store.publish([staged()], lambda _: None) == {"t/k": Outcome.PUBLISHED}
            assert "1 of 1 objects have no tags" in caplog.text


@pytest.mark.parametrize(("answer", "count"), [(Answer(204), 2), (error(404, "NoSuchUpload"), 0)])
def test_abort_counts_what_existed(answer: Answer, count: int) -> None:
    with S3Interceptor(times(9, answer)) as server:
        files: list[StagedFile | LeftOver] = [staged(), LeftOver("t/other", {"upload_id": "u"}, 0)]
        assert publisher(server).abort(files) == count


def test_abort_answered_by_a_proxy_is_no_missing_upload() -> None:
    with S3Interceptor(times(9, PAGE)) as server, pytest.raises(UnavailableError, match="AbortMultipartUpload"):
        publisher(server).abort([staged()])


def test_preflight_without_permission_to_list_warns(caplog: pytest.LogCaptureFixture) -> None:
    created = Answer(200, b"<R><UploadId>u</UploadId></R>")
    rules = [
        times(1, created, method="POST"),
        times(1, Answer(204), method="DELETE"),
        times(1, ABSENT, method="HEAD"),
        times(1, NO_KEY, method="GET"),
        times(1, error(403, "AccessDenied"), method="GET"),
    ]
    with S3Interceptor(*rules) as server, caplog.at_level(logging.WARNING):
        publisher(server).preflight()
    assert len(server.seen) == 5
    assert "s3:ListBucketMultipartUploads" in caplog.text


def test_preflight_without_permission_to_abort_names_it() -> None:
    created = Answer(200, b"<R><UploadId>u</UploadId></R>")
    rules = [times(1, created, method="POST"), times(1, error(403, "AccessDenied"), method="DELETE")]
    with S3Interceptor(*rules) as server, pytest.raises(AccessError, match="s3:AbortMultipartUpload"):
        publisher(server).preflight()


def test_reply_etag_has_no_quotes() -> None:
    assert HttpResponse(200, {"etag": '"e-1"'}, b"").etag == "e-1"
