"""Short-lived Kafka clients: fast to connect, quiet on stderr, with a limit for every wait, and our own errors.

Measured with confluent-kafka 2.16 against a local broker: with librdkafka's defaults a client needs 55 ms
for its first answer and `init_transactions` 510 ms; with `QUICK` 3 ms and 7 ms.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    FencedError,
    NotStoppedError,
    OffsetError,
    UnavailableError,
)
from airflow_connect.retrying import Backoff, Retry

API_TIMEOUT_S = 60.0
"""Timeout of one request to a cluster that has answered before."""
ANSWER_TIMEOUT_S = 10.0
"""Longest timeout of one try of a request that only reads: librdkafka leaves it with a broker that has died."""
BOOTSTRAP_TIMEOUT_S = 12.0
"""Timeout of the first contact: a typing error in bootstrap.servers should not take a minute."""

QUICK: Mapping[str, Any] = {
    # Without this librdkafka opens one connection per 50 ms and retries the transaction coordinator after
    # 500 ms. The price is one connection per broker, for the second that these clients live.
    "enable.sparse.connections": False,
    "socket.nagle.disable": True,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
    "log_level": 4,
}

_LOG = logging.getLogger("airflow_connect.kafka.clients.librdkafka")

# A fenced producer that is closed cannot abort its transaction: expected, and reported where it was fenced. For the
# whole process, because `warnings.catch_warnings` is not safe among threads (Python's documentation).
warnings.filterwarnings("ignore", "Producer abort_transaction failed during close", RuntimeWarning)
_Result = TypeVar("_Result")


class _Diary:
    """Keeps librdkafka's messages: they have the actual reason, while the caller only gets `timed out`."""

    def __init__(self) -> None:
        self.last_error: KafkaError | None = None
        self.fatal: KafkaError | None = None
        self.last_line = ""

    def log(self, level: int, message: str, *args: Any) -> None:
        """Receive a line of librdkafka's log (the one method of a `logging.Logger` that the client calls)."""
        line = message % args if args else message
        # "[thrd:x]: host:port/bootstrap: Connect to ... failed: ..." -> the part from the host.
        self.last_line = line.split("]: ")[-1]
        # DEBUG, whatever level librdkafka uses: a broken connection is normal while a broker restarts,
        # and without a configured handler Python would print warnings to stderr.
        _LOG.debug("librdkafka level %s: %s", level, line)

    def error(self, error: KafkaError) -> None:
        """Receive a client-wide error (`error_cb`)."""
        if error.fatal() and self.fatal is None:
            self.fatal = error
        # "All brokers down" follows the real reason and must not hide it.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self.last_error is None:
            self.last_error = error

    @property
    def reason(self) -> str:
        """The best known explanation, or ""."""
        return self.last_line or (self.last_error.str() if self.last_error else "")


class Admin(AdminClient):
    """An admin client with its diary."""

    diary: _Diary
    settings: dict[str, Any]

    def close(self) -> None:
        """Give up its connections and threads now; otherwise it keeps them until Python frees it. Idempotent."""
        self.__exit__(None, None, None)


class QuickConsumer(Consumer):
    """A consumer with its diary."""

    diary: _Diary
    settings: dict[str, Any]


class QuickProducer(Producer):
    """A producer with its diary. Its calls raise only what the client documents, `KafkaException`."""

    diary: _Diary
    settings: dict[str, Any]

    def flush(self, timeout: float = -1) -> int:
        """See `Producer`."""
        return self.answered(lambda: super(QuickProducer, self).flush(timeout))

    def poll(self, timeout: float = -1) -> int:
        """See `Producer`."""
        return self.answered(lambda: super(QuickProducer, self).poll(timeout))

    def init_transactions(self, timeout: float = -1) -> None:
        """See `Producer`."""
        self.answered(lambda: super(QuickProducer, self).init_transactions(timeout))

    def begin_transaction(self) -> None:
        """See `Producer`."""
        self.answered(lambda: super(QuickProducer, self).begin_transaction())

    def send_offsets_to_transaction(self, positions: Any, group_metadata: Any, timeout: float = -1) -> None:
        """See `Producer`."""
        self.answered(
            lambda: super(QuickProducer, self).send_offsets_to_transaction(positions, group_metadata, timeout)
        )

    def commit_transaction(self, timeout: float = -1) -> None:
        """See `Producer`."""
        self.answered(lambda: super(QuickProducer, self).commit_transaction(timeout))

    def abort_transaction(self, timeout: float = -1) -> None:
        """See `Producer`."""
        self.answered(lambda: super(QuickProducer, self).abort_transaction(timeout))

    def close(self) -> bool:
        """See `Producer`."""
        return self.answered(lambda: super(QuickProducer, self).close())

    def answered(self, call: Callable[[], _Answer]) -> _Answer:
        """The result of `call`, which may also end with SystemError.

        The client raises it if an error comes during callbacks, or where warnings are errors: with the error as its
        cause, or "returned NULL without setting an exception", without any. Then what has happened is unknown, unless
        the producer has failed for good.

        Raises:
            KafkaException: the cause, the fatal error of the producer, or `_STATE`: the outcome is unknown.
        """
        try:
            return call()
        except SystemError as error:
            if isinstance(error.__cause__, KafkaException):
                raise error.__cause__ from error
            if self.diary.fatal is not None:
                raise KafkaException(self.diary.fatal) from error
            reason = str(error.__cause__ or f"the client gave no reason: {error}")
            raise KafkaException(KafkaError(KafkaError._STATE, reason)) from error


_Answer = TypeVar("_Answer")
_Client = TypeVar("_Client", Admin, QuickConsumer, QuickProducer)
# Settings of only some kinds of clients; librdkafka warns about the others.
_CONSUMER_ONLY = frozenset(
    {
        "group.id",
        "group.instance.id",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "isolation.level",
        "auto.offset.reset",
        "enable.partition.eof",
        "fetch.wait.max.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "fetch.message.max.bytes",
        "max.poll.interval.ms",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "partition.assignment.strategy",
        "group.protocol",
        "check.crcs",
        "queued.min.messages",
        "queued.max.messages.kbytes",
        "fetch.queue.backoff.ms",
        "fetch.error.backoff.ms",
        "allow.auto.create.topics",
        "enable.auto.offset.store",
        "group.protocol.type",
        "coordinator.query.interval.ms",
        "group.remote.assignor",
    }
)


def admin_client(settings: Mapping[str, Any]) -> Admin:
    """Connect an admin client to the cluster; one per process is enough.

    Args:
        settings: librdkafka settings, see settings.py.

    Raises:
        UnavailableError: no broker answered within BOOTSTRAP_TIMEOUT_S.
        AccessError: the cluster refused the credentials.
        ConfigError: librdkafka refused a setting.
    """
    client = _build(Admin, {k: v for k, v in settings.items() if k not in _CONSUMER_ONLY}, {})
    ensure_reachable(client)
    return client


def state_consumer(settings: Mapping[str, Any], **extra: Any) -> QuickConsumer:
    """A consumer for reading a little and leaving: never subscribe it, only `assign`.

    Args:
        settings: librdkafka settings.
        extra: settings with `_` for `.`, which take precedence.
    """
    return _build(QuickConsumer, settings, _state_settings(settings, extra))


def state_consumer_settings(settings: Mapping[str, Any], **extra: Any) -> dict[str, Any]:
    """Every setting of the consumer that `state_consumer` creates."""
    return {**QUICK, **settings, **_state_settings(settings, extra)}


def _state_settings(settings: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "group.id": settings.get("group.id", "unused"),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 10,
        "allow.auto.create.topics": False,
        **{key.replace("_", "."): value for key, value in extra.items()},
    }


def group_handle(settings: Mapping[str, Any], group: str) -> QuickConsumer:
    """A consumer that only provides its group metadata; it does not connect deliberately."""
    return _build(QuickConsumer, settings, {"group.id": group, "enable.auto.commit": False})


def group_member(settings: Mapping[str, Any], own: Mapping[str, Any]) -> QuickConsumer:
    """A consumer that may join a group by the classic protocol; `own`: its settings, which take precedence."""
    fixed = {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "allow.auto.create.topics": False,
        "group.protocol": "classic",
        "partition.assignment.strategy": "range",
    }
    shared = {
        key: value for key, value in settings.items() if key not in ("group.instance.id", "group.remote.assignor")
    }
    return _build(QuickConsumer, shared, {**fixed, **own})


def producer(settings: Mapping[str, Any], **extra: Any) -> QuickProducer:
    """A producer; `extra` are settings with `_` for `.`, which override `settings`."""
    # Java's partitioner: equal keys must go to the same partition whichever client writes them (librdkafka's own
    # differs).
    own = {"partitioner": "murmur2_random"} | {k: v for k, v in settings.items() if k not in _CONSUMER_ONLY}
    return _build(QuickProducer, own, {key.replace("_", "."): value for key, value in extra.items()})


def _build(kind: type[_Client], settings: Mapping[str, Any], forced: Mapping[str, Any]) -> _Client:
    diary = _Diary()
    merged: dict[str, Any] = {**QUICK, **settings, **forced}
    try:
        conf: dict[str, Any] = {**merged, "error_cb": diary.error}
        client = kind(conf, logger=diary)
    except (KafkaException, ValueError, TypeError) as error:
        raise translate(error, doing="configuring a Kafka client") from error
    client.diary = diary
    client.settings = merged
    return client


def ensure_reachable(client: Admin | QuickConsumer | QuickProducer, timeout_s: float | None = None) -> None:
    """Wait until one broker has answered; normally about 3 ms. `timeout_s`: None is `BOOTSTRAP_TIMEOUT_S`.

    Raises:
        UnavailableError: with bootstrap.servers and the last reason.
        AccessError: authentication failed; waiting longer does not help.
    """
    timeout_s = BOOTSTRAP_TIMEOUT_S if timeout_s is None else timeout_s
    tries = Retry(Backoff(0), within_s=timeout_s)
    while True:
        try:
            client.cluster_id(timeout=0.25)
            return
        except KafkaException:
            client.poll(0)  # serves the diary
        error = client.diary.last_error
        servers = client.settings.get("bootstrap.servers") or client.settings.get("metadata.broker.list")
        if error is not None and error.code() in _AUTHENTICATION:
            raise _refused(f"connecting to {servers}", client.diary.reason)
        if not tries.pause():
            raise UnavailableError(
                f"No Kafka broker of bootstrap.servers={servers} answered within {timeout_s:.0f} s"
                f"{': ' + client.diary.reason if client.diary.reason else ''}.",
                suggestion="Check the addresses, the network and security.protocol "
                "(a TLS port does not answer plain text).",
                config_path="bootstrap.servers",
            )


def wait(future: Future[_Result], doing: str, timeout_s: float | None = None) -> _Result:
    """Result of an admin call, or our error; `timeout_s`: None is `API_TIMEOUT_S`."""
    timeout_s = API_TIMEOUT_S if timeout_s is None else timeout_s
    try:
        return future.result(timeout_s)
    except FutureTimeoutError as error:
        raise UnavailableError(f"Kafka did not answer within {timeout_s:.0f} s while {doing}.") from error
    except KafkaException as error:
        raise translate(error, doing) from error


def is_unanswered(error: ConnectError) -> bool:
    """Whether the request of `wait` failed because no answer came, rather than with an answer."""
    cause = error.__cause__
    inner = kafka_error(cause) if isinstance(cause, KafkaException) else None
    return isinstance(cause, FutureTimeoutError) or (inner is not None and inner.code() == KafkaError._TIMED_OUT)


def _codes(*names: str) -> frozenset[int]:
    return frozenset(getattr(KafkaError, name) for name in names)


FENCED = _codes("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED")
_AUTHENTICATION = _codes("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL")
_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the consumer group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the transactional.id",
    KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "the delegation token",
}
NO_TOPIC = _codes("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID")
_NOT_EMPTY = _codes(
    "UNKNOWN_MEMBER_ID",
    "NON_EMPTY_GROUP",
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "STALE_MEMBER_EPOCH",
)
_TOO_LARGE = _codes("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_BAD_CONFIG = _codes(
    "_INVALID_ARG",
    "_CONFLICT",
    "INVALID_CONFIG",
    "POLICY_VIOLATION",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_PARTITIONS",
    "TOPIC_EXCEPTION",
    "INVALID_TRANSACTION_TIMEOUT",
)


def kafka_error(error: BaseException | KafkaError) -> KafkaError | None:
    """The KafkaError inside an exception, if there is one."""
    if isinstance(error, KafkaError):
        return error
    first = error.args[0] if error.args else None
    return first if isinstance(first, KafkaError) else None


def earlier_fatal_error(client: QuickProducer, error: KafkaException) -> KafkaException:
    """The earlier fatal error of a producer, if it now only reports that there was one."""
    inner = kafka_error(error)
    if inner is None or inner.code() != KafkaError._FATAL:
        return error
    try:
        client.poll(0)  # calls the diary, or raises it here
    except KafkaException as fatal:
        return fatal
    earlier = client.diary.fatal
    return error if earlier is None else KafkaException(earlier)


def translate(error: BaseException | KafkaError, doing: str) -> ConnectError:
    """Translate Kafka's error to ours.

    Args:
        error: what confluent_kafka raised or delivered.
        doing: the activity, such as "reading the committed offsets of group x".
    """
    inner = kafka_error(error)
    if inner is None:
        return ConfigError(f"Kafka's client refused its settings while {doing}: {error}.", code="kafka.config")
    code, text = inner.code(), inner.str()
    if code in FENCED:
        return FencedError(
            f"A newer run of the same connector has taken over, or its offsets were changed; this run was stopped while"
            f" {doing} ({inner.name()}).",
            suggestion=FencedError.advice,
        )
    if code in _AUTHENTICATION:
        return _refused(doing, text)
    if code in _DENIED:
        return AccessError(
            f"Kafka denied access to {_DENIED[code]} while {doing}: {text}.",
            code="kafka.denied",
            suggestion="Grant the principal the ACL that the operation needs.",
        )
    if code in NO_TOPIC:
        return AccessError(
            f"The topic or partition does not exist while {doing}: {text}.",
            code="kafka.no_topic",
            suggestion="Check the name, or whether it was deleted.",
        )
    return _translate_rest(code, text, inner, doing)


def _translate_rest(code: int, text: str, inner: KafkaError, doing: str) -> ConnectError:
    if code in _NOT_EMPTY:
        return NotStoppedError(
            f"The consumer group has live members: Kafka refused while {doing} ({inner.name()}).",
            suggestion="Stop the connector in Kafka Connect (PUT /connectors/<name>/stop), then run again.",
        )
    if code in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
        return OffsetError(f"Kafka no longer holds an offset while {doing}: {text}.")
    if code in _TOO_LARGE:
        return ConfigError(
            f"A record is larger than Kafka accepts while {doing}: {text}.",
            code="kafka.too_large",
            suggestion="Raise max.message.bytes of the topic and producer.override.max.request.size.",
        )
    if code in _BAD_CONFIG:
        return ConfigError(f"Kafka refused a setting while {doing}: {text}.", code="kafka.config")
    if code == KafkaError.UNSUPPORTED_VERSION or code == KafkaError._UNSUPPORTED_FEATURE:
        return ConfigError(
            f"The Kafka cluster is too old while {doing}: {text}.",
            code="kafka.too_old",
            suggestion="Kafka 2.8 or newer is required.",
        )
    return UnavailableError(
        f"Kafka failed while {doing}: {text} ({inner.name()}).",
        suggestion="Run again when the cluster is healthy.",
    )


def _refused(doing: str, reason: str) -> AccessError:
    return AccessError(
        f"Kafka refused the credentials while {doing}: {reason}.",
        code="kafka.authentication",
        suggestion="Check security.protocol, sasl.mechanism, sasl.jaas.config and the ssl.* keys.",
    )
