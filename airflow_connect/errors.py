"""The error tree: one base class, one subclass per kind of failure, one function that decides what is worth a retry.

A message is a complete sentence: what happened, where (configuration key or topic-partition@offset) and, in
`suggestion`, what to do. Errors survive pickling because Spark carries them between processes.
"""

from __future__ import annotations

from typing import Any

EXIT_DONE = 0
EXIT_RUN_FAILED = 1
EXIT_CONFIG_WRONG = 2


class ConnectError(Exception):
    """Base of every error that this package raises on purpose.

    Attributes:
        message: complete sentence without secrets.
        code: stable dotted identifier, `area.reason`, for documentation and `--json`.
        suggestion: what the reader can do, a complete sentence, or "".
        config_path: the configuration key that the error is about, or "".
        retriable: whether running again, unchanged, may succeed.
        ends_task: whether the task that raises it cannot go on, so that repeating its call is of no use.
        exit_code: process exit code of the command line (design: 0 done, 1 run failed, 2 configuration wrong).
    """

    code = "connect.failed"
    retriable = False
    ends_task = False
    exit_code = EXIT_RUN_FAILED

    def __init__(self, message: str, *, code: str = "", suggestion: str = "", config_path: str = "") -> None:
        """Store the parts; `code` overrides the class's own."""
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.suggestion = suggestion
        self.config_path = config_path

    def __str__(self) -> str:
        """Message, then suggestion."""
        return f"{self.message} {self.suggestion}".rstrip()

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from all parts: the default would drop the keyword arguments."""
        return _rebuild, (type(self), self.message, self.code, self.suggestion, self.config_path)

    def to_json(self) -> dict[str, Any]:
        """The `error` member of the `--json` envelope."""
        return {
            "code": self.code,
            "type": type(self).__name__,
            "message": self.message,
            "suggestion": self.suggestion,
            "configPath": self.config_path,
            "retriable": self.retriable,
        }


def _rebuild(kind: type[ConnectError], message: str, code: str, suggestion: str, config_path: str) -> ConnectError:
    return kind(message, code=code, suggestion=suggestion, config_path=config_path)


class ConfigError(ConnectError):
    """The configuration is wrong; nothing was started. Running again unchanged fails again."""

    code = "config.invalid"
    exit_code = EXIT_CONFIG_WRONG


class MissingPackageError(ConfigError):
    """A Python package of an extra is not installed; the suggestion names the extra."""

    code = "package.missing"


def missing_package(
    package: str, extra: str, *, purpose: str, where: str = "where the driver runs", config_path: str = ""
) -> MissingPackageError:
    """The error for a package that is not installed, with the same wording for every extra.

    Args:
        package: name of the distribution; several, with " and " between them.
        extra: the extra of airflow-connect that installs it.
        purpose: the feature that needs it, as the beginning of a sentence.
        where: which machines need it; "" if there is only this one.
        config_path: the key that requires it.
    """
    which = f"packages {package}, which are" if " and " in package else f"package {package}, which is"
    return MissingPackageError(
        f"{purpose} needs the Python {which} not installed.",
        suggestion=f'Run{f" this {where}" if where else ""}: pip install "airflow-connect[{extra}]"',
        config_path=config_path,
    )


class RetriableError(ConnectError):
    """A temporary failure. If `SinkTask.put` raises it, the same records are delivered again."""

    code = "connect.retriable"
    retriable = True


class UnavailableError(RetriableError):
    """A server did not respond, throttled, or responded with 5xx until the retries were used up."""

    code = "server.unavailable"
    retriable = True


class AccessError(ConnectError):
    """A server refused a request: credentials, permission, missing bucket or topic."""

    code = "access.denied"


class DataError(ConnectError):
    """A record cannot be converted or written; `errors.tolerance` decides what happens."""

    code = "data.invalid"


class LateRecordError(DataError):
    """A record arrived after its directory was announced as complete, and late records are refused."""

    code = "data.late_record"


class FatalDataError(DataError):
    """A record that fails the run despite `errors.tolerance`: it cannot, or must not, be skipped on its own."""


class UnencodableError(FatalDataError):
    """One of the values passed to an encoder cannot be encoded, and it is unknown which one.

    The task then starts over and checks each value separately, so users see this error only if that is not possible.
    """

    code = "data.unencodable"


class TooManyErrorsError(FatalDataError):
    """More records failed than `errors.max.records` allows; nothing of the run became visible."""

    code = "data.too_many_errors"


class SchemaError(DataError):
    """A record's schema does not fit the schema it must be written with."""

    code = "data.schema"


class OffsetError(ConnectError):
    """A committed offset cannot be used: the log no longer holds it, or the topic was recreated."""

    code = "offset.out_of_range"


class FencedError(ConnectError):
    """A newer run of the same connector has taken over, or its offsets were changed. It commits nothing more."""

    code = "run.fenced"
    advice = (
        "Nothing to do: the newer run, or the next one, does the work. Make sure that only one DAG runs this connector."
    )


class NotStoppedError(ConnectError):
    """A live Kafka Connect worker still owns the connector's consumer group."""

    code = "group.not_empty"


class AuditError(ConnectError):
    """Counts or positions do not add up; the run stops before anything is visible."""

    code = "audit.mismatch"


class PublishConflictError(ConnectError):
    """The key of a staged file already holds an object that this run did not write."""

    code = "publish.conflict"


class StagedFileLostError(ConnectError):
    """A staged file has vanished before it was published and could not be copied again."""

    code = "publish.lost"


class NothingPublishedError(StagedFileLostError):
    """Nothing of a manifest is visible, and nothing of it ever can be: it is closed, and its records copied again."""


class StateError(ConnectError):
    """A document of a run, or one in the runs topic, cannot be read: unknown version or damaged."""

    code = "state.unreadable"


class DatabaseError(ConnectError):
    """A database refused a statement: a table or column is missing, or its own message tells why."""

    code = "database.failed"


class JarsError(ConnectError):
    """Jars of a lock file could not be fetched, or are not those of the lock. Nothing incomplete is kept."""

    code = "jars.failed"


class SearchError(ConnectError):
    """A search server refused a request: an index is missing, blocked or closed, or its own message tells why."""

    code = "search.failed"


class IcebergError(ConnectError):
    """The catalog of an Iceberg table refused a request, or a table cannot take what a run has for it."""

    code = "iceberg.failed"


class TaskFailedError(ConnectError):
    """A Spark task or the Spark cluster failed; another attempt may succeed."""

    code = "task.failed"
    retriable = True


class JavaPluginError(TaskFailedError):
    """A Java plugin threw an exception. The message names the plugin and the exception with its causes.

    Retriable, as foreign exceptions are: they are mostly broken connections.
    """

    code = "java.plugin_failed"
    retriable = True
    ends_task = True


class MissingPluginError(TaskFailedError):
    """A machine that runs tasks lacks a Java plugin of the driver, or has another version of it.

    Retriable: another attempt may run on another machine, or after somebody has copied the folder.
    """

    code = "java.missing_on_executor"
    retriable = True
    ends_task = True


class JavaRetriableError(JavaPluginError, RetriableError):
    """A Java plugin threw Kafka Connect's RetriableException: the same call may succeed later."""

    code = "java.retriable"
    retriable = True
    ends_task = False


class JavaDataError(DataError):
    """A converter or a transformation of the plugin host failed on a record."""

    code = "java.data"


class JvmGoneError(TaskFailedError):
    """The JVM of a Java plugin ended by itself: killed, crashed, out of memory, or the plugin ended it."""

    code = "java.jvm_gone"
    retriable = True
    ends_task = True


class JavaBlockedError(TaskFailedError):
    """A Java plugin did not return within its time. Its JVM was killed; the message has the stack of its thread."""

    code = "java.blocked"
    retriable = True
    ends_task = True


class JavaGroupError(TaskFailedError):
    """A task of a Java sink that commits its offsets itself could not join the consumer group, or is no member now."""

    code = "java.group"
    retriable = True
    ends_task = True


class JavaNotReadyError(TaskFailedError):
    """A Java source was not ready to read in time. Such a run does not count as empty."""

    code = "java.not_ready"
    retriable = True
    ends_task = True


class JavaVersionError(AccessError):
    """The Java, or the Kafka Connect runtime, that plugins would run on is missing or too old."""

    code = "java.version"


class InternalError(ConnectError):
    """This package has a bug. Running again fails in the same way; please report it with its traceback."""

    code = "internal.error"


def is_retriable(error: BaseException) -> bool:
    """Whether the same run, started again, may succeed.

    Retriable: unavailable servers, Spark failures (a later run recovers from the manifest). Not retriable: wrong
    configuration, refused access, data that cannot be converted, audit mismatches, and being fenced, because the run
    that fenced this one has already done or will do the work. Foreign exceptions count as retriable: they are mostly
    broken connections, and a retry is harmless (exactly-once does not depend on it).
    """
    return error.retriable if isinstance(error, ConnectError) else True
