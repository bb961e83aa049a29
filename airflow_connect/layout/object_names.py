"""The grammar of object keys, both ways: offsets to key, key to offsets.

`[<topics.dir><dd>]<topic><dd><directory><dd><topic><fd><partition><fd><start, zero padded><extension>` where
dd is `directory.delim` and fd is `file.delim`; a blank `topics.dir` removes the leading part. Where a transformation
has renamed the topic, the first <topic> is the new one and the second the original one: the file name always holds
Kafka's own coordinates, so topics that are merged into one cannot meet in one name.
Source: Confluent S3 sink (TopicPartitionWriter.fileKeyToCommit), `topics/t/partition=0/t+0+0000000000.avro`.

In file systems the name holds the last offset too, and `topics.dir` may depend on Kafka's topic.
Source: Confluent HDFS sink (FileUtils.committedFileName), `topics/t/partition=0/t+0+0000000000+0000000099.avro`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from airflow_connect.api.errors import ConfigError, DataError
from airflow_connect.layout.escaping import check_delimiter
from airflow_connect.layout.topic_directories import constant_head, directory_of

# Limit of S3 and of every server that imitates it.
MAX_KEY_BYTES = 1024
KEYS, HEADERS = ".keys", ".headers"

TOPIC_CHARACTER = "[A-Za-z0-9._-]"
"""Regular expression of the characters that Kafka allows in names of topics."""
MAX_TOPIC_CHARACTERS = 249

_TOPIC = f"{TOPIC_CHARACTER}+"
_RENAMED = "\0"


@dataclass(frozen=True)
class NameSettings:
    """What the configuration says about object names.

    Attributes:
        topics_dir: `topics.dir`; blank leaves it out.
        directory_delimiter: `directory.delim`.
        file_delimiter: `file.delim`.
        pad_width: `filename.offset.zero.pad.width`, digits, >= 0.
        hold_end: whether a file's name holds its last offset too, as Confluent's HDFS sink writes it.
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
        """Refuse settings whose keys could not be read back, or that walk out of the bucket's tree."""
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
        """What every key begins with, whatever the topic: `topics/`, or "" when `topics.dir` is blank."""
        return self._ended(self.topics_dir if self.topic_pattern is None else constant_head(self.topics_dir))

    def prefix_of(self, topic: str) -> str:
        """What every key begins with that holds records of Kafka's `topic`.

        Raises:
            ConfigError: `topics.dir` depends on the topic in a way that this one does not fit.
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
    """Final key of a file whose names hold the last offset.

    Args:
        key: what `object_key` made.
        end: last offset inside plus one; the name holds the last offset itself.
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
    """What the key of a file of `topic`-`partition` begins with: its directory, without a delimiter at the end."""
    fd = names.file_delimiter
    name = f"{names.directory_delimiter}{topic}{fd}{partition}{fd}{start:0{names.pad_width}d}"
    return key[: key.rindex(name)]


def under_renamed_topic(topic: str, directory: str) -> str:
    """A directory below another topic than that of the partition, in the form that `object_key` takes.

    Args:
        topic: the new topic, for which `is_legal_topic` holds.
        directory: what the partitioner returned.
    """
    return f"{topic}{_RENAMED}{directory}"


def without_topic(directory: str) -> str:
    """The partitioner's directory, whatever the topic is called."""
    return directory.rpartition(_RENAMED)[2]


def topic_of(directory: str, topic: str) -> str:
    """The topic that a partitioner's directory is below: `topic`, unless it is `under_renamed_topic`."""
    return _split(directory, topic)[0]


def _split(directory: str, topic: str) -> tuple[str, str]:
    """Topic and directory; `topic` where nothing was renamed. No topic and no directory holds a NUL."""
    renamed, mark, rest = directory.partition(_RENAMED)
    return (renamed, rest) if mark else (topic, directory)


@lru_cache(maxsize=1024)
def is_legal_topic(topic: str) -> bool:
    """Whether Kafka would take the name, which makes it safe in a path: a transformation may return any text.

    Source: org.apache.kafka.common.internals.Topic.
    """
    return (
        len(topic) <= MAX_TOPIC_CHARACTERS
        and topic not in (".", "..")
        and re.fullmatch(_TOPIC, topic, re.ASCII) is not None
    )


def keys_extension(extension: str, marker: str) -> str:
    """Extension of the object with keys (`KEYS`) or headers (`HEADERS`) beside values: `.keys.avro`."""
    return marker + extension
