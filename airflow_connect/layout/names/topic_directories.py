"""Directories that depend on the topic: `${topic}`, `${0}`, `${1}` ... inside `topics.dir` and `logs.dir`.

`${0}` is the whole topic, `${1}` the first group of `topic.capture.groups.regex`, which must match the whole topic. The
topic is always Kafka's own, even if a transformation has renamed it. Source: Confluent's HDFS sink
(HdfsSinkConnectorConfig.getDirFromTopic, validateDirsAndRegex).
"""

from __future__ import annotations

import re
from functools import lru_cache

from airflow_connect.api.config.values import shortened
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

PATTERN_KEY = "topic.capture.groups.regex"

_TOPIC = "${topic}"
_GROUP = re.compile(r"\$\{(\d+)\}")
_ANY = re.compile(r"\$\{(?:(?!\$\{).)*\}")


def check_template(template: str, key: str, pattern: str) -> None:
    """Reject a directory with substitutions that can never work.

    Args:
        template: value of `key`.
        key: `topics.dir` or `logs.dir`.
        pattern: `topic.capture.groups.regex`, "" when it is not set.

    Raises:
        ConfigError: a group without pattern, or anything else in `${}`.
    """
    if _GROUP.search(template) and not pattern:
        raise ConfigError(
            f"{key} cannot contain ${{n}} without a valid {PATTERN_KEY} being configured.",
            config_path=key,
            suggestion=f"Set {PATTERN_KEY} to a regular expression with these groups, or write ${{topic}}.",
        )
    invalid = _ANY.search(_GROUP.sub("", template).replace(_TOPIC, ""))
    if invalid:
        raise ConfigError(
            f"{key}: {template} contains an invalid ${{}} substitution {invalid.group()}. Valid substitutions are"
            " ${topic} and ${n} where n >= 0.",
            config_path=key,
        )


def check_pattern(pattern: str) -> None:
    """Reject an invalid regular expression.

    Raises:
        ConfigError: with the position of the mistake.
    """
    _compiled(pattern)


def is_template(directory: str) -> bool:
    """Whether the directory depends on the topic."""
    return _TOPIC in directory or _GROUP.search(directory) is not None


def constant_head(directory: str) -> str:
    """The directories before the first one that depends on the topic, without trailing slash."""
    return directory[: directory.index("${")].rpartition("/")[0] if is_template(directory) else directory


@lru_cache(maxsize=1024)
def directory_of(template: str, pattern: str, topic: str) -> str:
    """The directory of a topic.

    Args:
        template: `topics.dir` or `logs.dir`.
        pattern: `topic.capture.groups.regex`, or "".
        topic: Kafka's topic.

    Raises:
        ConfigError: the expression does not match the whole topic, or has fewer groups than the template uses.
    """
    directory = template.replace(_TOPIC, topic)
    if not pattern:
        return directory
    found = _compiled(pattern).fullmatch(topic)
    if found is None:
        raise ConfigError(
            f"Topic {topic} does not fully match the regular expression {shortened(pattern)}.",
            config_path=PATTERN_KEY,
            suggestion=f"Let {PATTERN_KEY} match every topic of the connector, or copy this one with another.",
        )
    wanted = max((int(number) for number in _GROUP.findall(template)), default=0)
    groups = len(found.groups())
    if wanted > groups:
        raise ConfigError(
            f"Topic {topic} must have at least {wanted} capture groups using regex pattern {pattern}, but actually"
            f" had {groups} capture groups.",
            config_path=PATTERN_KEY,
        )
    return _GROUP.sub(lambda number: found[int(number[1])] or "", directory)


def _compiled(pattern: str) -> JavaPattern:
    try:
        return compile_java_pattern(pattern)
    except PatternError as error:
        raise ConfigError(
            f"{PATTERN_KEY} is an invalid regex pattern: {error}.",
            config_path=PATTERN_KEY,
            suggestion="Write it in the syntax of java.util.regex.Pattern.",
        ) from error
