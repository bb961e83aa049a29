"""Which topics a sink reads: `topics`, or every topic that `topics.regex` matches in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import TopicDescription  # type: ignore[attr-defined]

from airflow_connect.counting import names
from airflow_connect.errors import AccessError, ConfigError, ConnectError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError
from airflow_connect.kafka.clients.asking import ask
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, translate

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic at planning time.

    Attributes:
        topic_id: Kafka's id (base64, 22 characters); a topic that is deleted and recreated gets a new one.
        partitions: number of partitions.
    """

    topic_id: str
    partitions: int


def resolve_topics(admin: Admin, topics: Sequence[str] | None, regex: str | None) -> dict[str, TopicInfo]:
    """Topics of a connector, sorted by name; 1-4 ms.

    Args:
        topics: names; all of them must exist.
        regex: Java regular expression, matched against whole names. Internal topics never match
            (`exclude.internal.topics`). It may match nothing: the topics may be created later.

    Raises:
        ConfigError: a topic does not exist, or the expression cannot be used.
        AccessError: a topic may not be described.
    """
    for is_last in (False, False, True):
        wanted = matching_topics(all_names(admin), regex) if regex else list(dict.fromkeys(topics or ()))
        if not wanted:
            break
        try:
            found = ask(admin, partial(_described, wanted), "describing topic")
        except AccessError as error:
            if error.code != "kafka.no_topic" or (regex and is_last):
                raise
            if not regex:
                raise _missing(wanted, all_names(admin)) from error
            continue  # A topic was deleted after the list was made.
        return {n: TopicInfo(str(found[n].topic_id), len(found[n].partitions)) for n in sorted(wanted)}
    return {}


def _described(wanted: Sequence[str], client: Admin, timeout_s: float) -> Mapping[str, Future[TopicDescription]]:
    found: Mapping[str, Future[TopicDescription]] = client.describe_topics(
        TopicCollection(list(wanted)), request_timeout=timeout_s
    )
    return found


def described(admin: Admin, wanted: Sequence[str]) -> dict[str, TopicDescription]:
    """What Kafka says about topics, by name.

    Raises:
        AccessError: a topic does not exist, or may not be described.
        UnavailableError: Kafka did not answer.
    """
    return ask(admin, partial(_described, wanted), "describing topic") if wanted else {}


def deleted_topics(admin: Admin, wanted: Sequence[str]) -> frozenset[str]:
    """Those of these topics that Kafka says do not exist. A topic that may not be described counts as existing.

    Raises:
        ConnectError: Kafka did not answer.
    """
    refused: dict[str, ConnectError] = {}
    if wanted:
        ask(admin, partial(_described, wanted), "describing topic", refused)
    for error in refused.values():
        if not isinstance(error, AccessError):
            raise error
    return frozenset(name for name, error in refused.items() if error.code == "kafka.no_topic")


def ids_of(admin: Admin, wanted: Sequence[str]) -> tuple[dict[str, str], frozenset[str]]:
    """Kafka's ids of topics, and those of the topics that Kafka says do not exist.

    A topic that may not be described is in neither.

    Raises:
        ConnectError: Kafka did not answer.
    """
    if not wanted:
        return {}, frozenset()
    refused: dict[str, ConnectError] = {}
    found = ask(admin, partial(_described, wanted), "describing topic", refused)
    for error in refused.values():
        if not isinstance(error, AccessError):
            raise error
    deleted = frozenset(name for name, error in refused.items() if error.code == "kafka.no_topic")
    return {name: str(description.topic_id) for name, description in found.items()}, deleted


def matching_topics(existing: Iterable[str], regex: str) -> list[str]:
    """The topics that a `topics.regex` matches in full; internal topics never match.

    Raises:
        ConfigError: the expression cannot be used.
    """
    pattern = java_pattern(regex)
    return [name for name in existing if name not in INTERNAL_TOPICS and pattern.fullmatch(name)]


def all_names(admin: Admin) -> list[str]:
    """Every topic that this principal may see, sorted.

    Raises:
        ConnectError: Kafka refused, or did not answer.
    """
    try:
        return sorted(admin.list_topics(timeout=API_TIMEOUT_S).topics)
    except KafkaException as error:
        raise translate(error, "listing topics") from error


def _missing(wanted: Sequence[str], existing: Sequence[str]) -> ConfigError:
    import difflib  # for this error only

    missing = [name for name in wanted if name not in existing]
    near = list(dict.fromkeys(match for name in missing for match in difflib.get_close_matches(name, existing, 3, 0.6)))
    return ConfigError(
        f"Kafka has no topic {names(missing)} that this principal may see.",
        code="config.topic_missing",
        suggestion=(f"Did you mean {names(near)}? " if near else "") + "Create the topic, or correct `topics`.",
        config_path="topics",
    )


def java_pattern(regex: str) -> JavaPattern:
    """Compile a `topics.regex` for `fullmatch`.

    Raises:
        ConfigError: Java refuses it, or it is not supported here.
    """
    try:
        return compile_java_pattern(regex)
    except PatternError as error:
        raise ConfigError(
            f"topics.regex={regex} is not a regular expression: {error}.",
            config_path="topics.regex",
            suggestion="Write it in the syntax of java.util.regex.Pattern.",
        ) from error
