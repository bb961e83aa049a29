"""The grammar of object keys, in both directions: offsets to key, key to offsets.

`[<topics.dir><dd>]<topic><dd><directory><dd><topic><fd><partition><fd><start, zero padded><extension>` where
dd is `directory.delim` and fd is `file.delim`; a blank `topics.dir` removes the leading part. If a transformation has
renamed the topic, the first <topic> is the new one and the second is the original one: the file name always contains
Kafka's own coordinates, so the files of merged topics never have the same name. Source: Confluent S3 sink
(TopicPartitionWriter.fileKeyToCommit), `topics/t/partition=0/t+0+0000000000.avro`.

In file systems the name also contains the last offset, and `topics.dir` may depend on Kafka's topic.
Source: Confluent HDFS sink (FileUtils.committedFileName), `topics/t/partition=0/t+0+0000000000+0000000099.avro`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.layout.names.escaping import check_delimiter
from airflow_connect.layout.names.topic_directories import constant_head, directory_of

# Limit of S3 and of all compatible stores.
MAX_KEY_BYTES = 1024
KEYS, HEADERS = ".keys", ".headers"

TOPIC_CHARACTER = "[A-Za-z0-9._-]"
"""Regular expression of the characters that Kafka allows in names of topics."""
MAX_TOPIC_CHARACTERS = 249

_TOPIC = f"{TOPIC_CHARACTER}+"
_RENAMED = "\0"


@dataclass(frozen=True)
class NameSettings:
    """The configuration of object names.

    Attributes:
        topics_dir: `topics.dir`; blank: none.
        directory_delimiter: `directory.delim`.
        file_delimiter: `file.delim`.
        pad_width: `filename.offset.zero.pad.width`, digits, >= 0.
        hold_end: whether a file's name also contains its last offset, as in Confluent's HDFS sink.
        topic_pattern: `topic.capture.groups.regex`, or "" for none; `${topic}` and `${n}` in `topics_dir` are then
            replaced. None: they stand for themselves.
    """

    topics_dir: str = "topics"
    directory_delimiter: str = "/"
    file_delimiter: str = "+"
    pad_width: int = 10
    hold_end: bool = False
    topic_pattern: str | None = None

    def __post_init__(self) -> None:
        """Reject settings whose keys could not be parsed again, or that lead out of the bucket's tree."""
        check_delimiter(self.directory_delimiter, "directory.delim")
        check_delimiter(self.file_delimiter, "file.delim")
        if self.pad_width < 0:
            raise ConfigError(
                f"filename.offset.zero.pad.width={self.pad_width} must be 0 or more.",
                code="layout.bad_pad_width",
                config_path="filename.offset.zero.pad.width",
            )
        if {".", ".."} & set(re.split(r"[/\\]", self.topics_dir)):
            raise ConfigError(
                f"topics.dir={self.topics_dir!r} must not contain '.' or '..' as a part.",
                code="layout.bad_topics_dir",
                config_path="topics.dir",
            )

    @property
    def prefix(self) -> str:
        """The prefix of every key, whatever the topic is: `topics/`, or "" if `topics.dir` is blank."""
        return self._ended(self.topics_dir if self.topic_pattern is None else constant_head(self.topics_dir))

    def prefix_of(self, topic: str) -> str:
        """The prefix of every key with records of Kafka's `topic`.

        Raises:
            ConfigError: `topics.dir` depends on the topic, and this topic does not match.
        """
        if self.topic_pattern is None:
            return self._ended(self.topics_dir)
        directory = directory_of(self.topics_dir, self.topic_pattern, topic)
        if {".", ".."} & set(re.split(r"[/\\]", directory)):
            raise ConfigError(
                f"The directory of topic {topic} would be {directory!r}, which must not contain '.' or '..' as a part.",
                code="layout.bad_topics_dir",
                config_path="topics.dir",
            )
        return self._ended(directory)

    def _ended(self, directory: str) -> str:
        return directory + self.directory_delimiter if directory.strip() else ""


def ended_key(key: str, end: int, extension: str, names: NameSettings) -> str:
    """Final key of a file whose name contains the last offset.

    Args:
        key: the result of `object_key`.
        end: last offset inside plus one; the name contains the last offset itself.
        extension: the one that `key` ends with.
    """
    stem = key.removesuffix(extension) if extension else key
    return f"{stem}{names.file_delimiter}{end - 1:0{names.pad_width}d}{extension}"


def object_key(directory: str, topic: str, partition: int, start: int, extension: str, names: NameSettings) -> str:
    """Key of the object that begins at offset `start` of `topic`-`partition`, without its end.

    Args:
        directory: what the partitioner returned, already escaped; `under_renamed_topic` of it for another topic.
        topic: Kafka topic; Kafka's own rules ([A-Za-z0-9._-], neither `.` nor `..`) make it safe in a path.
        start: first offset inside, >= 0, padded with zeros to `names.pad_width` digits.
        extension: with its dot, `.snappy.parquet`; for keys and headers see `keys_extension`.

    Returns:
        Key without bucket; the same inputs give the same key on every machine.

    Raises:
        DataError: longer than 1,024 UTF-8 bytes.
    """
    dd, fd = names.directory_delimiter, names.file_delimiter
    own_topic, own_directory = _split(directory, topic)
    file_name = f"{topic}{fd}{partition}{fd}{start:0{names.pad_width}d}{extension}"
    key = f"{names.prefix_of(topic)}{own_topic}{dd}{own_directory}{dd}{file_name}"
    # A character takes at most 4 bytes: short keys need no encoding.
    if len(key) > MAX_KEY_BYTES // 4 and len(key.encode("utf-8", "surrogatepass")) > MAX_KEY_BYTES:
        raise DataError(
            f"The key of {topic}-{partition}@{start} is longer than {MAX_KEY_BYTES} bytes: {key[:90]}...",
            code="data.key_too_long",
            suggestion="Partition by a shorter field, or shorten topics.dir.",
        )
    return key


def directory_key(key: str, topic: str, partition: int, start: int, names: NameSettings) -> str:
    """The directory of the key of a file of `topic`-`partition`, without a trailing delimiter."""
    fd = names.file_delimiter
    name = f"{names.directory_delimiter}{topic}{fd}{partition}{fd}{start:0{names.pad_width}d}"
    return key[: key.rindex(name)]


def under_renamed_topic(topic: str, directory: str) -> str:
    """A directory below a topic other than the partition's own, in the form that `object_key` accepts.

    Args:
        topic: the new topic, for which `is_legal_topic` holds.
        directory: what the partitioner returned.
    """
    return f"{topic}{_RENAMED}{directory}"


def without_topic(directory: str) -> str:
    """The partitioner's directory, whatever the topic's name is."""
    return directory.rpartition(_RENAMED)[2]


def topic_of(directory: str, topic: str) -> str:
    """The topic above a partitioner's directory: `topic`, unless it is `under_renamed_topic`."""
    return _split(directory, topic)[0]


def _split(directory: str, topic: str) -> tuple[str, str]:
    """Topic and directory; `topic` if it was not renamed. Topics and directories never contain a NUL."""
    renamed, mark, rest = directory.partition(_RENAMED)
    return (renamed, rest) if mark else (topic, directory)


@lru_cache(maxsize=1024)
def is_legal_topic(topic: str) -> bool:
    """Whether Kafka would accept the name, so that it is safe in a path: a transformation may return any text.

    Source: org.apache.kafka.common.internals.Topic.
    """
    return (
        len(topic) <= MAX_TOPIC_CHARACTERS
        and topic not in (".", "..")
        and re.fullmatch(_TOPIC, topic, re.ASCII) is not None
    )


def keys_extension(extension: str, marker: str) -> str:
    """Extension of the object with keys (`KEYS`) or headers (`HEADERS`) next to the values: `.keys.avro`."""
    return marker + extension
