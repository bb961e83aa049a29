"""What is done about the answers of a server, among them those that only Elasticsearch gives.

The answers of Elasticsearch are those that users of versions 7 and 8 have published: no such server has been run here.
"""

from __future__ import annotations

import pytest

from airflow_connect.connectors.search.answers import Verdict, judge
from airflow_connect.connectors.search.conflicts import (
    DROPPED,
    IN_FAILURE_STORE,
    SAME_VERSION,
    Conflict,
    Conflicts,
    Place,
    Versions,
)
from airflow_connect.errors import DataError, SearchError, UnavailableError


def judged(*items, operation="index"):
    body = {"took": 3, "errors": any("error" in item for item in items), "items": [{operation: item} for item in items]}
    return judge("http://es:9200", "orders", body, len(items), lambda n: f"orders-0@{n}")


def failed(status, kind, reason, cause=None):
    error = {"type": kind, "reason": reason, "caused_by": cause}
    return {"_index": "orders", "_id": "1", "status": status, "error": error}


WRITTEN = {"_index": "orders", "_id": "0", "status": 201, "result": "created", "_seq_no": 4, "_primary_term": 1}


def test_elasticsearch_8_names_documents_that_it_cannot_parse_by_another_exception():
    reason = "[1:6] failed to parse field [n] of type [long] in document with id '1'. Preview of field's value: 'x'"
    cause = {"type": "illegal_argument_exception", "reason": 'For input string: "x"'}
    verdict = judged(WRITTEN, failed(400, "document_parsing_exception", reason, cause))
    assert verdict.again == [] and [position for position, _ in verdict.rejected] == [1]
    message = verdict.rejected[0][1].message
    assert "orders-0@1" in message and "document_parsing_exception" in message and "For input string" in message


@pytest.mark.parametrize(
    ("status", "kind", "reason", "is_overload"),
    [
        (429, "es_rejected_execution_exception", "rejected execution of coordinating operation", True),
        (429, "circuit_breaking_exception", "[parent] Data too large, data for [<http_request>]", True),
        (
            429, "cluster_block_exception",
            "index [orders] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]", False,
        ),
        (503, "unavailable_shards_exception", "[orders][0] primary shard is not active Timeout: [1m]", False),
        (500, "process_cluster_event_timeout_exception", "failed to process cluster event (put-mapping)", False),
    ],
)  # fmt: skip
def test_answers_that_pass_are_repeated(status, kind, reason, is_overload):
    verdict = judged(WRITTEN, failed(status, kind, reason))
    assert (verdict.again, verdict.rejected, verdict.is_overload) == ([1], [], is_overload)
    assert kind in verdict.reason and verdict.suggestion


def test_too_many_fields_have_a_code_of_their_own_in_the_words_of_both_servers():
    for reason in (
        "Limit of total fields [1000] has been exceeded",
        "Limit of total fields [1000] has been exceeded while adding new fields [1]",
    ):
        ((_, error),) = judged(failed(400, "illegal_argument_exception", reason)).rejected
        assert error.code == "search.too_many_fields"


def test_words_of_the_server_count_also_after_a_long_id_and_not_those_of_the_id():
    """The text was cut before: the document was sent again until the run failed, and so did the next one."""
    kind, told = "version_conflict_engine_exception", "is higher or equal to the one provided"
    for name in ("k" * 512, f"x]: version conflict, current version [9] {told} [9]"):
        ours = f"[{name}]: version conflict, current version [7] {told} [7] (seqNo [3])"
        newer = f"[{name}]: version conflict, current version [7] {told} [3]"
        race = f"[{name}]: version conflict, required seqNo [4], primary term [1]. current document has seqNo [5]"
        verdict = judged(*(failed(409, kind, reason) for reason in (ours, newer, race)))
        assert verdict.conflicts == [(0, SAME_VERSION), (1, 7)] and verdict.again == [2]
        assert len(verdict.reason) <= 500
    field = "f" * 600
    raced = judged(
        failed(400, "illegal_argument_exception", f"mapper [{field}] cannot be changed from type [a] to [b]")
    )
    ((_, error),) = raced.rejected
    assert len(error.message) < 700
    assert raced.retry_races() and raced.again == [0] and raced.rejected == []
    many = f"failed to parse [{field}]; Limit of total fields [1000] has been exceeded"
    assert judged(failed(400, "illegal_argument_exception", many)).rejected[0][1].code == "search.too_many_fields"


def test_conflicts_are_documents_that_are_there_but_for_updates():
    kind = "version_conflict_engine_exception"
    newer = "[1]: version conflict, current version [7] is higher or equal to the one provided [3]"
    first = "[1]: version conflict, document already exists (current version [1])"
    for operation, reason, version in (("index", newer, 7), ("create", first, 1), ("delete", newer, 7)):
        verdict = judged(WRITTEN, failed(409, kind, reason), operation=operation)
        assert verdict.again == verdict.rejected == []
        assert verdict.conflicts == [(1, version)]
    assert judged(failed(409, kind, newer), operation="update").again == [0]


def test_document_that_a_pipeline_has_dropped_is_left_out_with_a_note():
    """The answer in elastic/elasticsearch#32278; the node of the tests has no ingest pipelines."""
    dropped = {"_index": "orders", "_id": None, "_version": -3, "result": "noop", "status": 200}
    for operation in ("index", "create"):
        verdict = judged(WRITTEN, dropped, operation=operation)
        assert (verdict.again, verdict.rejected, verdict.conflicts) == ([], [], [(1, DROPPED)])
    assert judged(dropped, operation="update").conflicts == []  # OpenSearch says "index" of a dropped update, too.
    counts = Conflicts({})
    assert counts.add(Conflict("orders", Place("orders", 0, 7, "orders"), DROPPED), Versions.OFFSETS)
    (note,) = counts.take_notes()
    assert note.startswith("1 record was NOT written to orders") and "The first was orders-0@7" in note


def test_document_that_a_pipeline_refuses_is_rejected_and_not_sent_until_the_run_fails():
    """The answer of OpenSearch 3.8 for the processor `fail`, with the status of a fault of the server."""
    verdict = judged(WRITTEN, failed(500, "fail_processor_exception", "no such customer"))
    assert (verdict.again, verdict.is_uncertain) == ([], False)
    ((position, error),) = verdict.rejected
    assert position == 1 and error.code == "search.rejected" and "no such customer" in error.message


def test_document_in_the_failure_store_of_a_data_stream_is_left_out_with_a_note():
    """The answer in Elasticsearch's page "Failure store"; the node of the tests has none."""
    stored = {"_index": ".fs-logs-2025.05.01-000002", "result": "created", "status": 201, "failure_store": "used"}
    verdict = judged(WRITTEN, stored, operation="create")
    assert (verdict.again, verdict.rejected, verdict.conflicts) == ([], [], [(1, IN_FAILURE_STORE)])
    counts = Conflicts({})
    assert counts.add(Conflict("logs", Place("logs", 0, 7, "logs"), IN_FAILURE_STORE), Versions.FIRST)
    (note,) = counts.take_notes()
    assert note.startswith("1 record was NOT written to logs") and "logs::failures" in note


def test_deletion_without_a_version_that_meets_another_writer_is_sent_again():
    reason = "[1]: version conflict, required seqNo [4], primary term [1]. current document has seqNo [5]"
    verdict = judged(failed(409, "version_conflict_engine_exception", reason), operation="delete")
    assert (verdict.again, verdict.conflicts) == ([0], [])


@pytest.mark.parametrize(
    ("status", "kind", "reason", "code"),
    [
        (400, "index_closed_exception", "closed", "search.index"),
        (400, "routing_missing_exception", "routing is required for [orders]/[1]", "search.index"),
        (404, "index_not_found_exception", "no such index [orders] and [action.auto_create_index] is [false]",
         "search.index"),
        (403, "cluster_block_exception", "index [orders] blocked by: [FORBIDDEN/8/index write (api)];",
         "search.blocked"),
        (403, "security_exception", "action [indices:data/write/bulk[s]] is unauthorized", "search.index"),
        (400, "illegal_argument_exception", "pipeline with id [orders] does not exist", "search.index"),
        (400, "illegal_argument_exception", "no write index is defined for alias [orders].", "search.index"),
        (400, "illegal_argument_exception", "only write ops with an op_type of create are allowed in data streams",
         "search.index"),
        (400, "illegal_argument_exception", "Number of documents in the index can't exceed [2147483519]",
         "search.index"),
        (400, "validation_exception", "Validation Failed: 1: this action would add [2] shards, but it has [9]/[9]",
         "search.index"),
        (400, "validation_exception", "Validation Failed: 1: Operation [INDEX] is not allowed with a custom id",
         "search.index"),
        (400, "validation_exception", "Validation Failed: 1: Operation [DELETE] is not allowed as setting",
         "search.index"),
    ],
)  # fmt: skip
def test_answers_about_the_index_end_the_task(status, kind, reason, code):
    with pytest.raises(SearchError) as caught:
        judged(WRITTEN, failed(status, kind, reason))
    assert caught.value.code == code and reason.split(";")[0] in caught.value.message


@pytest.mark.parametrize("words", ["pipeline with id [orders] does not exist", "no write index is defined for alias"])
def test_document_that_has_the_words_of_an_index_is_refused_alone(words):
    reason = f"failed to parse field [n] of type [long]. Preview of field's value: '{words}'"
    verdict = judged(WRITTEN, failed(400, "illegal_argument_exception", reason))
    assert [position for position, _ in verdict.rejected] == [1]


def test_something_else_than_an_answer_to_a_bulk_request_is_named():
    two, broken = [{"index": WRITTEN}] * 2, {**WRITTEN, "status": 503}
    others = (None, [], {}, {"index": broken}, {"index": {}}, {"index": None}, {"index": {**WRITTEN, "error": "full"}})
    bodies = [{"items": []}, {"errors": False}, {"errors": True, "items": two}]
    for body in (*bodies, *({"errors": False, "items": [*two, item]} for item in others)):
        with pytest.raises(SearchError, match="something else") as caught:
            judge("http://es:9200", "orders", body, 3, str)
        assert caught.value.code == "search.answer"


@pytest.mark.parametrize("body", [None, "<html>welcome</html>", '{"errors":false,"items":[{"index":{"sta'])
def test_answer_that_is_no_json_may_have_been_cut_and_is_asked_for_again(body):
    with pytest.raises(UnavailableError, match="is not JSON, or with the first part of it") as caught:
        judge("http://es:9200", "orders", body, 3, str)
    assert caught.value.code == "search.answer"


def test_later_documents_of_an_id_are_sent_again_with_it_and_judged_then():
    error = DataError("rejected", code="search.rejected", suggestion="Correct it.")
    verdict = Verdict(again=[1], rejected=[(0, error), (3, error), (4, error)])
    verdict.add_followers(["a", "b", "a", "b", "a", "b", ""])
    assert verdict.again == [1, 3, 5] and [position for position, _ in verdict.rejected] == [0, 4]
    plain = Verdict(again=[1], rejected=[(0, error)])
    plain.add_followers(())
    assert plain.again == [1] and len(plain.rejected) == 1
