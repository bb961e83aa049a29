"""Sends bulk requests, several at a time, each until all of its documents are written or rejected."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.search.answers import (
    BLOCKED,
    Verdict,
    check_order,
    judge,
    judge_block,
    rejection,
    suggestion_for,
)
from airflow_connect.connectors.search.conflicts import Conflict, Elsewhere
from airflow_connect.connectors.search.keys import BY_OFFSET, BY_SERVER
from airflow_connect.counting import counted, plural
from airflow_connect.errors import ConnectError, DataError, UnavailableError

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.search.bulks import Bulk
    from airflow_connect.connectors.search.client import SearchClient
    from airflow_connect.connectors.search.config import SearchSinkConfig

FEWEST_IN_BULK = 50
"""Documents. Requests to an overloaded server become no smaller than this, but for those that fail twice."""
_SUCCESSES_FOR_MORE = 10
_MOST_RACES = 3
"""How often documents that met a mapping in the making are sent again: each time, another new field may meet one."""
_UNKNOWN_PARAMETER = re.compile(r"request \[/\S+\] contains unrecognized parameter")
_OF_CONTENT = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_ACCEPTABLE,
               HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS)  # fmt: skip
"""Of proxies and firewalls: because of a document, or whatever is sent."""
_TEMPORARY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS, 499)
"""The last one is that of nginx for a client that has closed the connection."""


class Pace:
    """How large requests are, and how many are sent at a time: less after each overload, slowly more after that."""

    def __init__(self, most_records: int, most_requests: int) -> None:
        """Begin with the most of both."""
        self._most_records, self._most_requests = most_records, most_requests
        self.records, self.requests = most_records, most_requests
        self._successes = 0

    def slow_down(self) -> None:
        """The server cannot keep up."""
        self.records = max(min(FEWEST_IN_BULK, self._most_records), self.records // 2)
        self.requests = max(1, self.requests // 2)
        self._successes = 0

    def succeeded(self) -> None:
        """A request was executed."""
        self._successes += 1
        if self._successes >= _SUCCESSES_FOR_MORE:
            self._successes = 0
            self.records = min(self._most_records, self.records * 2)
            self.requests = min(self._most_requests, self.requests + 1)


class BulkSender:
    """Sends requests from threads of its own. Its methods are for one thread: the task's."""

    def __init__(self, client: SearchClient, config: SearchSinkConfig) -> None:
        """Starts no thread yet."""
        self._client = client
        self._config = config
        self._bulk_bytes = config.most_bytes
        self._threads = ThreadPoolExecutor(config.in_flight, "search-bulk")
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._held: Counter[str] = Counter()
        self._requests = self._records = self._active = 0
        self._rejected: list[tuple[SinkRecord, DataError]] = []
        self._conflicts: list[Conflict] = []
        self._elsewhere = Elsewhere()
        self._error: BaseException | None = None
        self._indices: dict[str, str] = {}
        self._pace = Pace(config.batch_size, config.in_flight)

    @property
    def batch_size(self) -> int:
        """Maximum number of records of a request, for now."""
        return self._pace.records

    @property
    def bulk_bytes(self) -> int | None:
        """Maximum size of a request: `bulk.size.bytes`, or less if the server found a request too large; None: any."""
        return self._bulk_bytes

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sent."""
        return self._requests == 0

    def send(self, bulk: Bulk) -> None:
        """Send a request as soon as there is space for it, and none in flight has an id whose order matters.

        Raises:
            ConnectError: an earlier request failed, or there is no space within `flush.timeout.ms`.
        """
        ids = set(bulk.documents.ids) - {""}
        count = len(bulk.documents)

        def has_space() -> bool:
            if self._requests == 0:
                return True
            is_full = self._requests >= self._pace.requests or self._records + count > self._config.buffered
            return not is_full and not any(name in self._held for name in ids)

        with self._changed:
            self._wait_until(has_space)
            self._requests += 1
            self._records += count
            self._held.update(ids)
        self._threads.submit(self._run, bulk, ids)

    def wait(self) -> None:
        """Return when every request is answered.

        Raises:
            ConnectError: one of them failed, or `flush.timeout.ms` has passed.
        """
        with self._changed:
            self._wait_until(lambda: self._requests == 0)

    def take_rejected(self) -> list[tuple[SinkRecord, DataError]]:
        """Records whose documents the server does not take, since the last call."""
        with self._changed:
            taken, self._rejected = self._rejected, []
        return taken

    def take_conflicts(self) -> list[Conflict]:
        """Documents that the server holds already, since the last call."""
        with self._changed:
            taken, self._conflicts = self._conflicts, []
        return taken

    def take_elsewhere(self) -> Elsewhere:
        """Documents that were written to indices with another name than their target's, since the last call."""
        with self._changed:
            taken, self._elsewhere = self._elsewhere, Elsewhere()
        return taken

    def close(self) -> None:
        """Send nothing more; what is being sent may still arrive."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _wait_until(self, is_due: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._config.flush_timeout_ms / 1000
        while self._error is None and not is_due():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise UnavailableError(
                    f"{self._client.name} has not executed the bulk requests of a task within"
                    f" flush.timeout.ms={self._config.flush_timeout_ms}.",
                    code="search.timeout",
                    suggestion="Look at the load of the cluster, or set flush.timeout.ms higher.",
                )
            self._changed.wait(left_s)
        if self._error is not None:
            raise self._error

    # --- in threads -----------------------------------------------------------------------------------------------

    def _run(self, bulk: Bulk, ids: set[str]) -> None:
        error: BaseException | None = None
        try:
            self._deliver(bulk)
        except BaseException as raised:  # noqa: BLE001 (raised in the task's thread)
            error = raised
        with self._changed:
            self._requests -= 1
            self._records -= len(bulk.documents)
            self._held -= Counter(ids)
            self._error = self._error or error
            self._changed.notify_all()

    def _deliver(self, bulk: Bulk) -> None:
        """Send a request, and again what is left of it, until nothing is.

        Raises:
            ConnectError: the server refused it, or there was no progress.
        """
        pending, failures = [bulk], 0
        while pending and not self._ending.is_set():
            part = pending.pop(0)
            index_before = self._indices.get(part.target.name, "")
            try:
                verdict = self._try_in_turn(part)
            except UnavailableError as error:
                verdict = _whole(part, error, is_uncertain=True)
            has_raced = part.races < min(_MOST_RACES, self._config.retries) and verdict.retry_races()
            if not self._config.is_stream:  # There, those that were created behind a document that was refused stay.
                verdict.is_uncertain |= verdict.add_followers(part.documents.ids)  # These were executed.
            self._note(part, verdict)
            if not verdict.again:
                failures = 0
                continue
            has_progress = len(verdict.again) < len(part.documents)
            failures = 1 if has_progress else failures + 1
            if failures > self._config.retries and not has_raced:
                raise self._exhausted(part, verdict)
            again = part.part(verdict.again).raced() if has_raced else part.part(verdict.again)
            if verdict.is_uncertain:
                again = again.repeated(index_before)
            # A small request that fails again is divided as well: its documents may be large.
            splits = verdict.is_overload and (len(again.documents) > FEWEST_IN_BULK or failures > 1)
            pending[:0] = again.halves() if splits else [again]
            self._ending.wait(self._config.backoff.pause_s(failures))

    def _try_in_turn(self, bulk: Bulk) -> Verdict:
        """Send when fewer requests than the pace allows are on their way: repetitions slow down as well."""
        with self._changed:
            self._changed.wait_for(lambda: self._active < self._pace.requests or self._ending.is_set())
            if self._ending.is_set():
                return Verdict()  # Nobody asks any more what became of the documents.
            self._active += 1
        try:
            return self._try(bulk)
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def _try(self, bulk: Bulk) -> Verdict:
        documents = bulk.documents
        body = documents.body()
        answer = self._client.send("POST", bulk.target.bulk_path, body, is_bulk=True)
        if answer.is_success:
            return self._judged(bulk, body, answer.body)
        if answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            if len(documents) > 1:
                self._limit_bytes(len(body) // 2)
            return self._refused(bulk, f"a request of {len(body)} bytes is too large for the server ({answer.status})")
        # A proxy's own 400 says nothing about documents, and neither does that of a server which is too old for us.
        if answer.status == HTTPStatus.BAD_REQUEST and answer.kind and not _UNKNOWN_PARAMETER.search(answer.reason):
            return self._refused(bulk, answer.reason)
        if answer.status in _TEMPORARY or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            error = UnavailableError(
                f"{self._client.name} did not execute a bulk request ({answer.status}): {answer.reason}.",
                code="search.unavailable",
                suggestion=suggestion_for(answer.kind),
            )
            if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                return _whole(bulk, error)  # None of it was executed. A proxy's 502 or 504 does not say so.
            raise error
        if answer.kind == BLOCKED:
            return self._blocked(bulk, answer.reason)
        what = f"execute a bulk request for {bulk.target.name}"
        may_be_content = not answer.kind and answer.status in _OF_CONTENT
        if may_be_content and len(documents) > 1:
            return self._refused(bulk, answer.reason)
        if may_be_content:
            what += f" with the document of the record at {documents.record(0).where} alone"
        raise self._client.refused(what, answer)

    def _judged(self, bulk: Bulk, sent: bytes, body: Any) -> Verdict:
        """What a successful answer says, and what it cannot say of a request that was sent again."""
        documents, target = bulk.documents, bulk.target.name
        verdict = judge(self._client.name, target, body, len(documents), lambda n: documents.record(n).where)
        if verdict.replaced and BY_OFFSET in self._config.used_ids:
            verdict.name_replaced(lambda n: self._config.ids_of(documents.place(n).renamed) == BY_OFFSET)
        verdict.replaced.clear()  # What keys have as ids is meant to be replaced.
        if not verdict.is_plain:
            check_order(self._client.name, target, body["items"], sent)
        if bulk.is_repeated:

            def may_be_new(position: int, index: str) -> bool:
                is_other = index not in (target, bulk.index_before)  # An alias or a data stream may have moved.
                return is_other or self._config.ids_of(documents.place(position).renamed) == BY_SERVER

            verdict.add_repetitions(body["items"], may_be_new)
        (last,) = body["items"][-1].values()
        if "_index" in last:
            self._indices[target] = str(last["_index"])
        return verdict

    def _refused(self, bulk: Bulk, reason: str) -> Verdict:
        """A request that is refused as a whole: halves show which of its documents is the reason."""
        if len(bulk.documents) == 1:
            where = bulk.documents.record(0).where
            return Verdict(rejected=[(0, rejection(bulk.target.name, where, reason))])
        whole = Verdict()
        half = len(bulk.documents) // 2
        for first, part in zip((0, half), bulk.halves(), strict=True):
            verdict = self._try(part)
            whole.again += [first + n for n in verdict.again]
            whole.rejected += [(first + n, error) for n, error in verdict.rejected]
            whole.raced += [first + n for n in verdict.raced]
            whole.conflicts += [(first + n, version) for n, version in verdict.conflicts]
            for index, positions in verdict.indices.items():
                whole.indices.setdefault(index, []).extend(first + n for n in positions)
            whole.reason, whole.suggestion = whole.reason or verdict.reason, whole.suggestion or verdict.suggestion
            whole.is_overload |= verdict.is_overload
            whole.is_uncertain |= verdict.is_uncertain
        return whole

    def _blocked(self, bulk: Bulk, reason: str) -> Verdict:
        """The whole cluster is blocked."""
        verdict = Verdict()
        for position in range(len(bulk.documents)):
            judge_block(verdict, position, reason, bulk.target.name)
        return verdict

    def _limit_bytes(self, size_bytes: int) -> None:
        """Make later requests at most this large: the limit of a server does not change while a task runs."""
        with self._changed:
            self._bulk_bytes = min(size_bytes, self._bulk_bytes or size_bytes)

    def _note(self, bulk: Bulk, verdict: Verdict) -> None:
        rejected = [(bulk.documents.record(position), error) for position, error in verdict.rejected]
        conflicts = [Conflict(bulk.target.name, bulk.documents.place(n), version) for n, version in verdict.conflicts]
        again = set(verdict.again)
        with self._changed:
            self._rejected += rejected
            self._conflicts += conflicts
            for index, positions in verdict.indices.items():
                if written := [n for n in positions if n not in again] if again else positions:
                    self._elsewhere.add(bulk.target.name, index, len(written), bulk.documents.place(written[0]))
            if verdict.is_overload:
                self._pace.slow_down()
            elif not verdict.again:
                self._pace.succeeded()
                self._changed.notify_all()

    def _exhausted(self, bulk: Bulk, verdict: Verdict) -> ConnectError:
        return UnavailableError(
            f"{plural(len(verdict.again), 'document')} could not be written to {bulk.target.name} in"
            f" {counted(self._config.retries + 1, 'try', 'tries')}, the first of them from the record at"
            f" {bulk.documents.place(verdict.again[0])}: {verdict.reason}.",
            code="search.retries",
            suggestion=verdict.suggestion,
        )


def _whole(bulk: Bulk, error: UnavailableError, *, is_uncertain: bool = False) -> Verdict:
    """The whole request again, in smaller parts."""
    everything, reason = list(range(len(bulk.documents))), error.message.rstrip(".")
    return Verdict(everything, reason=reason, suggestion=error.suggestion, is_overload=True, is_uncertain=is_uncertain)
