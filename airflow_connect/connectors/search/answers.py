"""What the server says about each document of a bulk request: written, again later, never, or nothing works at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson

from airflow_connect.connectors.search.client import cut, reason_of, words_of
from airflow_connect.connectors.search.conflicts import (
    DROPPED,
    IN_FAILURE_STORE,
    MAYBE_TWICE,
    NOTHING_DELETED,
    NOTHING_LEFT,
    REPLACED,
    conflict_in,
    conflicting_version,
)
from airflow_connect.errors import DataError, SearchError, UnavailableError

_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY,
          HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)  # fmt: skip
_CHECK_URL = "Check that connection.url is a search server, and what is in between."
_NOT_ABOUT_DOCUMENTS = {
    "index_closed_exception": "Open the index.",
    "invalid_index_name_exception": "Rename the topic by a transformation such as RegexRouter, or map it to an index.",
    "index_not_found_exception": "Create the index, or let the cluster setting action.auto_create_index allow it.",
    "invalid_alias_name_exception": "Correct the alias.",
    "routing_missing_exception": "Remove _routing.required from the mapping: the sink sends no routing.",
}
# What the server calls an argument of the request, and is one of the index. The first words of the reason decide: a
# document may have the same ones.
_OF_THE_INDEX = re.compile(
    r"pipeline with id \[[^\]]*\] does not exist"
    r"|no write index is defined for alias"
    r"|only write ops with an op_type of create are allowed in data streams"
    r"|number of documents in the (?:index|shard) (?:can't|cannot) exceed"
    r"|(?:validation failed: 1: )?this action would add \[\d+\].* shards"
    r"|validation failed: 1: operation \[[a-z]+\] is not allowed ",  # of an append-only index
    re.IGNORECASE,
)
# The processor `fail` of an ingest pipeline refuses a document, with the status 500, which is that of faults.
_REFUSED_BY_PIPELINE = "fail_processor_exception"
_FULL_DISK = ("read-only / allow delete", "flood-stage")
# VersionType.EXTERNAL.explainConflictForWrites, and what `create` says. Any other conflict is one with a write of the
# same moment, such as of a deletion without a version: it is sent again.
_HELD = ("is higher or equal to the one provided", "document already exists")
BLOCKED = "cluster_block_exception"
_RACE = "cannot be changed from type"
TOO_MANY_FIELDS = "Limit of total fields"


@dataclass(slots=True)
class Verdict:
    """What is to be done about the documents of a request.

    Attributes:
        again: positions of documents that are sent again.
        rejected: position and error of documents that the server will never take.
        raced: positions of those of them that met a mapping in the making.
        conflicts: position of documents that the server holds already, and the version that it holds (None: unknown);
            or one of the negative numbers of `conflicts.py`: what the server has done instead.
        replaced: positions of documents that were written over others.
        indices: index that is not the target's name -> positions of documents that were written there. It may be one
            behind an alias or a data stream.
        reason: why documents are sent again, in the server's words.
        suggestion: what to do if it stays that way.
        is_overload: whether smaller requests may help.
        is_uncertain: whether the server may have executed what is sent again: it could not reach a shard any more, or
            gave no answer at all.
    """

    again: list[int] = field(default_factory=list)
    rejected: list[tuple[int, DataError]] = field(default_factory=list)
    raced: list[int] = field(default_factory=list)
    conflicts: list[tuple[int, int | None]] = field(default_factory=list)
    replaced: list[int] = field(default_factory=list)
    indices: dict[str, list[int]] = field(default_factory=dict)
    reason: str = ""
    suggestion: str = ""
    is_overload: bool = False
    is_uncertain: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether all documents were written where they were sent."""
        return not (self.again or self.rejected or self.conflicts or self.indices)

    def retry_races(self) -> bool:
        """Send documents again that met a mapping in the making; returns whether there are any.

        If two requests bring a new field at the same time, and the server derives another type from each, it rejects
        one of them, although its values fit the type that stays.
        """
        raced, self.raced = self.raced, []
        if raced:
            self.rejected = [(n, error) for n, error in self.rejected if n not in set(raced)]
            self.again = sorted([*self.again, *raced])
            self.reason = self.reason or "types of fields changed meanwhile"
        return bool(raced)

    def add_followers(self, ids: Sequence[str]) -> bool:
        """Also send later documents with the same ids again: what came after must come after once more.

        Returns whether there are any.

        What the server said about these does not count then: each of them is judged in its last try only.

        Args:
            ids: see `Documents.ids`.
        """
        if not ids or not self.again:
            return False
        chosen, names = set(self.again), {ids[n] for n in self.again} - {""}
        chosen |= {n for n in range(min(chosen), len(ids)) if ids[n] in names}
        has_more = len(chosen) > len(self.again)
        self.again = sorted(chosen)
        self.rejected = [(n, error) for n, error in self.rejected if n not in chosen]
        self.raced = [n for n in self.raced if n not in chosen]
        self.conflicts = [(n, version) for n, version in self.conflicts if n not in chosen]
        return has_more

    def name_replaced(self, has_own_id: Callable[[int], bool]) -> None:
        """Mark documents that were written over others.

        Args:
            has_own_id: whether the id of the document at a position belongs to one record only.
        """
        self.conflicts += [(n, REPLACED) for n in self.replaced if has_own_id(n)]

    def add_repetitions(self, items: Sequence[Any], may_be_new: Callable[[int, str], bool]) -> None:
        """Mark what cannot be known of a request that the server may have executed twice.

        Args:
            items: of the last answer.
            may_be_new: whether a document at a position that was made in an index may be a second one.
        """
        self.conflicts = [(n, NOTHING_LEFT if found == NOTHING_DELETED else found) for n, found in self.conflicts]
        for position, item in enumerate(items):
            (result,) = item.values()
            if result.get("result") == "created" and may_be_new(position, str(result.get("_index", ""))):
                self.conflicts.append((position, MAYBE_TWICE))


def judge(server: str, target: str, body: Any, count: int, where: Callable[[int], str]) -> Verdict:
    """Sort the items of a successful answer.

    Args:
        server, target: for messages.
        body: the decoded answer.
        count: number of documents in the request.
        where: gives the place of a document's record, for messages.

    Raises:
        SearchError: the index does not work, or the answer is none to this request.
        UnavailableError: the answer is no JSON, such as one that ends in the middle.
    """
    verdict = Verdict()
    if not isinstance(body, dict):
        # HTTP does not always tell that an answer was cut: not if the end of the connection is its end.
        raise UnavailableError(
            f"{server} answered a bulk request of {count} documents for {target} with something that is not JSON, or"
            " with the first part of it.",
            code="search.answer",
            suggestion=_CHECK_URL,
        )
    items = body.get("items")
    if not isinstance(items, Sequence) or len(items) != count or not all(map(_is_item, items)):
        raise SearchError(
            f"{server} answered a bulk request of {count} documents for {target} with something else.",
            code="search.answer",
            suggestion=_CHECK_URL,
        )
    for position, item in enumerate(items):
        ((operation, result),) = item.items()
        _judge_item(verdict, position, operation, result, target, where)
    return verdict


def check_order(server: str, target: str, items: Sequence[Any], body: bytes) -> None:
    """Refuse an answer whose items have another order than the documents: another record would get the blame.

    A server keeps the order, and documents are found by it. Ids alone do not tell them apart: an ingest pipeline may
    change them. So an answer is refused if it has the ids that were sent, and some at the places of others.

    Args:
        server, target: for messages.
        items: of an answer that `judge` has taken.
        body: of the request.

    Raises:
        UnavailableError: the order is another one. The documents may be written, or not.
    """
    sent, answered = _ids_in(body), [str(next(iter(item.values())).get("_id", "")) for item in items]
    if sent == answered or sorted(sent) != sorted(answered):
        return
    raise UnavailableError(
        f"{server} answered a bulk request of {len(sent)} documents for {target} with their ids in another order, so it"
        " is not known which of them were refused.",
        code="search.answer",
        suggestion="Repair or remove the proxy that is in between: it must not change the order of `items`.",
    )


def _ids_in(body: bytes) -> list[str]:
    """The id of each action of a request; "" where the server chooses it."""
    ids: list[str] = []
    lines = iter(body.removesuffix(b"\n").split(b"\n"))
    for line in lines:
        ((operation, action),) = orjson.loads(line).items()
        ids.append(str(action.get("_id", "")))
        if operation != "delete":
            next(lines)
    return ids


def _is_item(item: Any) -> bool:
    """Whether it says what became of a document: `{operation: {"status": ..., "error": {...}}}`."""
    if not isinstance(item, dict) or len(item) != 1:
        return False
    ((operation, result),) = item.items()
    if not isinstance(result, dict) or not isinstance(result.get("status"), int):
        return False
    if result.get("error") is not None:
        return isinstance(result["error"], dict)
    # A deletion of a document that does not exist has the status 404, but no error.
    status: int = result["status"]
    is_written = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
    return is_written or (operation == "delete" and status == HTTPStatus.NOT_FOUND)


def _judge_item(
    verdict: Verdict, position: int, operation: str, result: Any, target: str, where: Callable[[int], str]
) -> None:
    status, error = result["status"], result.get("error")
    if error is None:
        _judge_done(verdict, position, operation, result, target)
        return
    kind, reason, words = str(error.get("type")), reason_of(error), words_of(error)
    held = conflict_in(words)
    if status == HTTPStatus.CONFLICT and operation != "update" and _has_any(held, _HELD):
        verdict.conflicts.append((position, conflicting_version(held)))
        return
    if kind == BLOCKED:
        judge_block(verdict, position, words, target)
    elif kind == _REFUSED_BY_PIPELINE:
        verdict.rejected.append((position, rejection(target, where(position), words)))
    elif status in _LATER or status == HTTPStatus.CONFLICT:
        verdict.again.append(position)
        verdict.reason, verdict.suggestion = reason, suggestion_for(kind)
        verdict.is_overload = verdict.is_overload or status == HTTPStatus.TOO_MANY_REQUESTS
        verdict.is_uncertain = verdict.is_uncertain or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    elif _is_of_the_index(kind, status, str(error.get("reason"))):
        raise SearchError(
            f"Nothing can be written to {target}: {reason}.",
            code="search.index",
            suggestion=_NOT_ABOUT_DOCUMENTS.get(kind, "The server's own message gives the reason."),
        )
    else:
        verdict.rejected.append((position, rejection(target, where(position), words)))
        if _RACE in words:
            verdict.raced.append(position)


def _judge_done(verdict: Verdict, position: int, operation: str, result: Any, target: str) -> None:
    """What became of a document that was not refused."""
    # An update that changes nothing is a noop as well; a write is one only if a pipeline drops the document.
    if result.get("result") == "noop" and operation in ("index", "create"):
        verdict.conflicts.append((position, DROPPED))
    elif result.get("failure_store") == "used":
        verdict.conflicts.append((position, IN_FAILURE_STORE))
    elif operation == "delete" and result.get("result") == "not_found":
        verdict.conflicts.append((position, NOTHING_DELETED))
    else:
        if result.get("result") == "updated":
            verdict.replaced.append(position)
        if (index := result.get("_index")) and index != target:
            verdict.indices.setdefault(str(index), []).append(position)


def _is_of_the_index(kind: str, status: int, reason: str) -> bool:
    """Whether the server would refuse every document like this one."""
    if kind in _NOT_ABOUT_DOCUMENTS or status != HTTPStatus.BAD_REQUEST:
        return True
    return kind in ("illegal_argument_exception", "validation_exception") and bool(_OF_THE_INDEX.match(reason))


def judge_block(verdict: Verdict, position: int, reason: str, target: str) -> None:
    """Send a document again if a full disk is why nothing can be written.

    Raises:
        SearchError: somebody has set the block.
    """
    if not _has_any(reason, _FULL_DISK):
        raise SearchError(
            f"{target} is blocked: {cut(reason)}.",
            code="search.blocked",
            suggestion="Remove the block from the settings of the index or of the cluster.",
        )
    verdict.again.append(position)
    verdict.reason = cut(reason)
    verdict.suggestion = (
        "A disk of the cluster is too full, so the index is read-only: free space, and the server removes the block."
    )


def rejection(target: str, where: str, reason: str) -> DataError:
    """The error of a document that the server does not take; `reason`: all words of the server."""
    if TOO_MANY_FIELDS in reason:
        return DataError(
            f"{target} has too many fields to take the document of the record at {where}: {cut(reason)}.",
            code="search.too_many_fields",
            suggestion="Set dynamic=false in the mapping, use the type flat_object or flattened for members with"
            " changing names, or raise index.mapping.total_fields.limit.",
        )
    return DataError(
        f"{target} rejected the document of the record at {where}: {cut(reason)}.",
        code="search.rejected",
        suggestion="Correct the record or the mapping; behavior.on.malformed.documents says what becomes of it.",
    )


def suggestion_for(kind: str) -> str:
    """What to do if the server keeps giving an error of this type."""
    if kind == "unavailable_shards_exception":
        return "The index is red: look which of its shards has no node."
    if kind in ("circuit_breaking_exception", "es_rejected_execution_exception", "rejected_execution_exception"):
        return "The server has more to do than it can: lower tasks.max or max.in.flight.requests, or raise max.retries."
    return "Look at the health of the cluster; max.retries and retry.backoff.ms give it more time."


def _has_any(text: str, parts: Sequence[str]) -> bool:
    return any(part in text for part in parts)
