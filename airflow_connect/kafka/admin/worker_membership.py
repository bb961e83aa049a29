"""Membership of our workers in the group that their `group.id` names, by Kafka's own group protocol.

A worker joins as a consumer of the config topic that never reads. Kafka then tells who is there: a worker that dies is
gone after its session timeout, and one that leaves is gone at once. The protocol of Kafka Connect's workers is
another one (`connect` instead of `consumer`), and a group has one at a time, so the broker refuses whichever kind comes
second. The only partition of the topic is assigned to one member, which is called the leader; it has no more rights
than the others.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException

from airflow_connect.errors import ConfigError, ConnectError, NotStoppedError, RetriableError
from airflow_connect.kafka.admin.worker_group import described
from airflow_connect.kafka.clients.short_lived import Admin, group_member, translate

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1
_REJOIN_S = 1.0
_STABLE = "Stable"
_CLIENT_ID = re.compile(r"connect-(?P<worker>.+)-(?P<token>\d{13}-[0-9a-f]{8})")


class Timeouts(NamedTuple):
    """Of a group, in milliseconds, with Kafka Connect's names and defaults.

    Attributes:
        session: after which a worker that is not heard of counts as dead.
        heartbeat: between two signs of life.
        rebalance: within which every worker must join again when the members change.
    """

    session: int = 10_000
    heartbeat: int = 3_000
    rebalance: int = 60_000


class View(NamedTuple):
    """The group as a member sees it.

    Attributes:
        generation: grows with every change of the members that this process has seen.
        tokens: of the live processes, by worker id; more than one if workers share an id.
        is_leader: whether this process has the partition.
    """

    generation: int
    tokens: Mapping[str, tuple[str, ...]]
    is_leader: bool


class WorkerMembership:
    """One member. Its thread keeps the membership alive; the other methods may be called by any thread.

    Attributes:
        token: distinguishes this process from others with the same worker id. It begins with the time, in ms.
        rebalances: how many have been completed.
        last_rebalance_s: when the last one was, by `time.time()`; None: there was none.
    """

    def __init__(self, settings: Mapping[str, Any], group: str, topic: str, worker_id: str) -> None:
        """Does not join yet.

        Args:
            settings: librdkafka settings of a consumer.
            group: `group.id` of the worker.
            topic: an existing one, with one partition.
            worker_id: host:port.
        """
        self.token = f"{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(4)}"
        self.rebalances = 0
        self.last_rebalance_s: float | None = None
        self._settings = settings
        self._group = group
        self._topic = topic
        self._client_id = f"connect-{worker_id}-{self.token}"
        self._left = threading.Event()
        self._lock = threading.Lock()
        self._is_member = self._is_leader = False
        self._problem: ConnectError | None = None
        self._known: View | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_rebalancing(self) -> bool:
        """Whether this process is not a member now."""
        return not self._is_member

    @property
    def is_leader(self) -> bool:
        """Whether the only partition of the topic is assigned to it."""
        return self._is_leader

    def join(self, timeouts: Timeouts) -> None:
        """Join, and stay until `leave`; `view` tells when it is done."""
        self._thread = threading.Thread(target=self._stay, args=(timeouts,), name="membership", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Leave at once, so that the others need not wait for the session timeout."""
        self._left.set()
        if self._thread is not None:
            self._thread.join()

    def view(self, admin: Admin) -> View:
        """The members. Asks Kafka only if they have changed.

        Raises:
            RetriableError: this process is not a member now, or the members are changing.
            NotStoppedError: live workers of Kafka Connect are members.
            AccessError, UnavailableError: Kafka.
        """
        with self._lock:
            if not self._is_member:
                raise self._problem or _not_yet(self._group)
            if self._known is not None:
                return self._known
            generation, is_leader = self.rebalances, self._is_leader
        view = View(generation, _tokens(admin, self._group), is_leader)
        with self._lock:
            if self._is_member and generation == self.rebalances:
                self._known = view
                return view
        raise _not_yet(self._group)

    def _stay(self, timeouts: Timeouts) -> None:
        while not self._left.is_set():
            try:
                self._be_member(timeouts)
            except (KafkaException, ConnectError) as error:
                self._has_problem(error if isinstance(error, ConnectError) else self._explained(error))
                self._left.wait(_REJOIN_S)

    def _be_member(self, timeouts: Timeouts) -> None:
        consumer = group_member(
            self._settings,
            {
                "group.id": self._group,
                "client.id": self._client_id,
                "session.timeout.ms": timeouts.session,
                "heartbeat.interval.ms": timeouts.heartbeat,
                "max.poll.interval.ms": max(timeouts.rebalance, timeouts.session),
            },
        )
        try:
            consumer.subscribe(
                [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )
            while not self._left.is_set():
                message = consumer.poll(_POLL_S)
                error = None if message is None else message.error()
                if error is not None:
                    self._has_problem(self._explained(KafkaException(error)))
        finally:
            consumer.close()
            self._set(is_member=False, is_leader=False)

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        consumer.assign([])  # Membership is all that is wanted.
        with self._lock:
            self.rebalances += 1
            self.last_rebalance_s = time.time()
        self._set(is_member=True, is_leader=bool(partitions))

    def _on_revoke(self, consumer: Consumer, _: list[Any]) -> None:
        consumer.unassign()
        self._set(is_member=False, is_leader=False)

    def _set(self, *, is_member: bool, is_leader: bool) -> None:
        with self._lock:
            self._is_member, self._is_leader, self._known = is_member, is_leader, None
            if is_member:
                self._problem = None

    def _has_problem(self, problem: ConnectError) -> None:
        _LOG.info("The membership in group %s: %s", self._group, problem)
        with self._lock:
            self._problem = problem

    def _explained(self, error: KafkaException) -> ConnectError:
        inner = error.args[0] if error.args else None
        if isinstance(inner, KafkaError) and inner.code() == KafkaError.INVALID_SESSION_TIMEOUT:
            return ConfigError(
                f"The brokers do not accept this session timeout for the group {self._group}.",
                code="worker.session_timeout",
                config_path="session.timeout.ms",
                suggestion="Set it between the brokers' group.min.session.timeout.ms (6000 by default) and"
                " group.max.session.timeout.ms.",
            )
        if isinstance(inner, KafkaError) and inner.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
            return NotStoppedError(
                f"The group {self._group} has members of another kind: live workers of Kafka Connect, or a member with"
                " another assignment strategy.",
                suggestion="Stop them, or choose another group.id.",
            )
        return translate(error, f"joining the group {self._group}")


def _tokens(admin: Admin, group: str) -> dict[str, tuple[str, ...]]:
    found = described(admin, group, f"looking for the members of group {group}")
    tokens: dict[str, tuple[str, ...]] = {}
    for entry in found:
        if str(entry.state) != _STABLE:
            raise _not_yet(group)
        for member in entry.members:
            parts = _CLIENT_ID.fullmatch(str(member.client_id))
            if parts is not None:
                tokens[parts["worker"]] = tuple(sorted((*tokens.get(parts["worker"], ()), parts["token"])))
    return tokens


def _not_yet(group: str) -> RetriableError:
    return RetriableError(
        f"The members of group {group} are changing.",
        code="worker.rebalancing",
        suggestion="Nothing to do: it takes as long as every member needs to join again.",
    )
