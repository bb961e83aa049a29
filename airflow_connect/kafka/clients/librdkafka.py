"""The Python client's own librdkafka, called directly: a consumer whose messages never become Python objects.

The library is the one that confluent_kafka has loaded, found by its path in this process. Only its public C interface
(rdkafka.h) is used, and no compiler is needed. There are no callbacks: the Python client finds the reason for a problem
(kafka/reading/batch_reader.py).
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import confluent_kafka

from airflow_connect.api.offsets import TopicPartition

_CONSUMER = 1
_NO_CLOSE = 8
"""RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE: it is not in a group that it would have to leave."""
_OLDEST, _NEXT = 0x02000000, 0x03000000
_KNOWN_HEADERS = range(0x02100000, 0x02110000)
"""Versions (2.16) of which it is known where a message has its encoded headers."""
_TEXT_BYTES = 512

_SIGNATURES: Mapping[str, tuple[Any, list[Any]]] = {
    "rd_kafka_version": (c_int, []),
    "rd_kafka_conf_new": (c_void_p, []),
    "rd_kafka_conf_destroy": (None, [c_void_p]),
    "rd_kafka_conf_set": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]),
    "rd_kafka_conf_set_log_cb": (None, [c_void_p, c_void_p]),
    "rd_kafka_new": (c_void_p, [c_int, c_void_p, c_char_p, c_size_t]),
    "rd_kafka_poll_set_consumer": (c_int, [c_void_p]),
    "rd_kafka_destroy_flags": (None, [c_void_p, c_int]),
    "rd_kafka_queue_get_consumer": (c_void_p, [c_void_p]),
    "rd_kafka_queue_destroy": (None, [c_void_p]),
    "rd_kafka_topic_partition_list_new": (c_void_p, [c_int]),
    "rd_kafka_topic_partition_list_destroy": (None, [c_void_p]),
    "rd_kafka_topic_partition_list_add": (c_void_p, [c_void_p, c_char_p, c_int32]),
    "rd_kafka_topic_partition_list_set_offset": (c_int, [c_void_p, c_char_p, c_int32, c_int64]),
    "rd_kafka_assign": (c_int, [c_void_p, c_void_p]),
    "rd_kafka_incremental_unassign": (c_void_p, [c_void_p, c_void_p]),
    "rd_kafka_error_code": (c_int, [c_void_p]),
    "rd_kafka_error_destroy": (None, [c_void_p]),
    "rd_kafka_consume_batch_queue": (c_ssize_t, [c_void_p, c_int, c_void_p, c_size_t]),
    "rd_kafka_type": (c_int, [c_void_p]),
    "rd_kafka_topic_new": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "rd_kafka_topic_destroy": (None, [c_void_p]),
    "rd_kafka_produce_batch": (c_int, [c_void_p, c_int32, c_int, c_void_p, c_int]),
    "rd_kafka_queue_get_main": (c_void_p, [c_void_p]),
    "rd_kafka_queue_poll": (c_void_p, [c_void_p, c_int]),
    "rd_kafka_event_type": (c_int, [c_void_p]),
    "rd_kafka_event_message_count": (c_size_t, [c_void_p]),
    "rd_kafka_event_message_array": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "rd_kafka_event_error": (c_int, [c_void_p]),
    "rd_kafka_event_error_string": (c_char_p, [c_void_p]),
    "rd_kafka_event_error_is_fatal": (c_int, [c_void_p]),
    "rd_kafka_event_log": (c_int, [c_void_p, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_int)]),
    "rd_kafka_event_destroy": (None, [c_void_p]),
    "rd_kafka_err2str": (c_char_p, [c_int]),
}
# Called for single messages: keeping the interpreter's lock costs less than releasing and acquiring it.
_QUICK_SIGNATURES: Mapping[str, tuple[Any, list[Any]]] = {
    "rd_kafka_message_destroy": (None, [c_void_p]),
    "rd_kafka_message_timestamp": (c_int64, [c_void_p, POINTER(c_int)]),
    "rd_kafka_message_headers": (c_int, [c_void_p, POINTER(c_void_p)]),
    "rd_kafka_header_get_all": (
        c_int,
        [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p), POINTER(c_size_t)],
    ),
    "rd_kafka_topic_name": (c_char_p, [c_void_p]),
    "rd_kafka_produceva": (c_void_p, [c_void_p, c_void_p, c_size_t]),
}


class Librdkafka:
    """The functions of the loaded library, with their types."""

    def __init__(self, path: str) -> None:
        """`path`: the file that is already loaded."""
        self._functions = {
            **_typed(ctypes.CDLL(path), _SIGNATURES),
            **_typed(ctypes.PyDLL(path), _QUICK_SIGNATURES),
        }
        self.destroy_message = self._functions["rd_kafka_message_destroy"]
        self.has_known_headers = self.call("version") in _KNOWN_HEADERS
        self.produce_fields = self._functions["rd_kafka_produceva"]

    def call(self, name: str, *arguments: Any) -> Any:
        """Call `rd_kafka_<name>`."""
        return self._functions[f"rd_kafka_{name}"](*arguments)

    def timestamp(self, message: int) -> tuple[int, int]:
        """Timestamp and its type."""
        kind = c_int()
        stamp: int = self.call("message_timestamp", message, byref(kind))
        return stamp, kind.value

    def headers(self, message: int) -> tuple[tuple[bytes, bytes | None], ...]:
        """Headers in order; nothing says that a name is UTF-8."""
        found = c_void_p()
        if self.call("message_headers", message, byref(found)):
            return ()
        name, data, size = c_char_p(), c_void_p(), c_size_t()
        headers: list[tuple[bytes, bytes | None]] = []
        while not self.call("header_get_all", found, len(headers), byref(name), byref(data), byref(size)):
            value = None if data.value is None else ctypes.string_at(data.value, size.value)
            headers.append((name.value or b"", value))
        return tuple(headers)

    def topic_name(self, topic: int) -> str:
        """Name of a message's topic."""
        name: bytes = self.call("topic_name", topic)
        return name.decode()


class NotDirectError(Exception):
    """The library cannot be called directly, so the Python client is used; the text says why."""


def required_library() -> Librdkafka:
    """The library of this process.

    Wanted: CPython with its interpreter lock, not a debug build; Linux, 64 bits; one librdkafka 2.x in the process, the
    one that confluent_kafka says it uses.

    Raises:
        NotDirectError: it cannot be called safely.
    """
    found = _found_library()
    if isinstance(found, str):
        raise NotDirectError(found)
    return found


@cache
def _found_library() -> Librdkafka | str:
    """The library, or why there is none."""
    if reason := unknown_python():
        return reason
    if not sys.platform.startswith("linux") or ctypes.sizeof(c_void_p) != 8 or sys.byteorder != "little":
        return "only 64-bit Linux is supported"
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if "/librdkafka" in line}
    if len(paths) != 1:
        return f"{len(paths)} copies of librdkafka are loaded"
    try:
        library = Librdkafka(paths.pop())
    except (OSError, AttributeError) as error:  # the file was replaced, or lacks a function
        return f"librdkafka cannot be called ({error})"
    version: int = library.call("version")
    text, wanted = confluent_kafka.libversion()
    if version != wanted or not _OLDEST <= version < _NEXT:
        return f"librdkafka {text} is not a supported version"
    return library


def unknown_python() -> str:
    """Why the memory layout of Python objects, or the interpreter's lock, is not as expected; "": it is.

    A free-threaded build has a different object header (PEP 703) and no lock; a debug build may have extra fields.
    """
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "Python is a free-threaded build"
    if "d" in getattr(sys, "abiflags", "") or hasattr(sys, "gettotalrefcount") or hasattr(sys, "getobjects"):
        return "Python is a debug build"
    return ""


class DirectConsumer:
    """A consumer of assigned partitions."""

    def __init__(self, library: Librdkafka, handle: int, queue: int) -> None:
        """Use `open_consumer`."""
        self.library = library
        self._handle = handle
        self._queue = queue

    def assign(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Begin to read; False if the library refuses."""
        call = self.library.call
        partitions = self._partition_list(positions)
        for tp, offset in positions.items():
            call("topic_partition_list_set_offset", partitions, tp.topic.encode(), tp.partition, offset)
        refused: int = call("assign", self._handle, partitions)
        call("topic_partition_list_destroy", partitions)
        return not refused

    def unassign(self, tp: TopicPartition) -> None:
        """Stop reading a partition; messages of it may still be in the queue."""
        partitions = self._partition_list([tp])
        error = self.library.call("incremental_unassign", self._handle, partitions)
        self.library.call("topic_partition_list_destroy", partitions)
        if error:
            self.library.call("error_destroy", error)

    def consume(self, into: int, size: int, timeout_ms: int) -> int:
        """Put pointers to at most `size` messages at the address `into`; returns how many there are."""
        count: int = self.library.call("consume_batch_queue", self._queue, timeout_ms, into, size)
        return max(0, count)

    def close(self) -> None:
        """Release the connections. Every message must have been destroyed before."""
        self.library.call("queue_destroy", self._queue)
        self.library.call("destroy_flags", self._handle, _NO_CLOSE)

    def _partition_list(self, partitions: Iterable[TopicPartition]) -> int:
        listed: int = self.library.call("topic_partition_list_new", 0)
        for tp in partitions:
            self.library.call("topic_partition_list_add", listed, tp.topic.encode(), tp.partition)
        return listed


def open_consumer(library: Librdkafka, settings: Mapping[str, Any]) -> DirectConsumer:
    """A consumer.

    Raises:
        NotDirectError: a setting is not plain text or is refused; the Python client then says why.
    """
    conf = library.call("conf_new")
    reason = ctypes.create_string_buffer(_TEXT_BYTES)
    for key, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        is_scalar = isinstance(value, str | int | float)
        if not is_scalar or library.call("conf_set", conf, key.encode(), text.encode(), reason, _TEXT_BYTES):
            library.call("conf_destroy", conf)
            raise NotDirectError(f"the setting {key} needs the Python client")
    library.call("conf_set_log_cb", conf, None)  # it would write to standard error
    handle = library.call("new", _CONSUMER, conf, reason, _TEXT_BYTES)
    if not handle:
        library.call("conf_destroy", conf)
        raise NotDirectError("librdkafka refused the settings of a consumer")
    library.call("poll_set_consumer", handle)
    return DirectConsumer(library, handle, library.call("queue_get_consumer", handle))


def _typed(library: Any, signatures: Mapping[str, tuple[Any, list[Any]]]) -> dict[str, Any]:
    typed = {}
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
        typed[name] = function
    return typed
