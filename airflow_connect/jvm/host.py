"""The plugin host: a JVM of its own, the child of this process, that runs Kafka Connect's Java plugins.

A plugin can end its JVM, fill its memory or hang: each host serves one task, or one connector, and its end becomes a
typed error here. Nothing is left running: `close` ends the JVM and its children, and a JVM whose parent has died ends
itself. Configurations, with their secrets, go over the socket, never into arguments or the environment.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from airflow_connect.api.config.secrets import Redactor, secret_values
from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    InternalError,
    JavaBlockedError,
    JavaDataError,
    JavaGroupError,
    JavaPluginError,
    JavaRetriableError,
    JavaVersionError,
    JvmGoneError,
)
from airflow_connect.jvm.class_data import ClassDataArchive
from airflow_connect.jvm.host_jars import HELPER, runtime_jars
from airflow_connect.jvm.host_process import HostProcess
from airflow_connect.jvm.java import Java, find_java
from airflow_connect.jvm.stack_traces import fill_in, hide
from airflow_connect.jvm.wire import Buffer, ClosedError, Reply, Wire

MAIN = "org.airflowconnect.host.Main"
START_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 10.0
"""How long each call may take by which a plugin is stopped. There are three of them at most."""
EXIT_TIMEOUT_S = 5.0
ARCHIVE_TIMEOUT_S = 60.0
DEFAULT_HEAP_MB = 512
WIRE_VERSION = 1
_LINES_IN_MESSAGES = 10
_THREADS = ("connect-request", "connect-poll")
"""Names of the threads that call a plugin: `Main.java`, `SourcePoller.java`."""


class PluginHost:
    """A running plugin host; a context manager. Not for several threads at once.

    Attributes:
        secret_names: keys of type PASSWORD, in addition to those with names that suggest a secret.
        subject: the plugin that is called, for errors.
    """

    def __init__(self, process: HostProcess, wire: Wire, archive: ClassDataArchive) -> None:
        """Use `start`."""
        self._process = process
        self._wire = wire
        self._archive = archive
        self.subject = "a Java plugin"
        self._hide = Redactor([])
        self._secrets: set[str] = set()
        self.secret_names: frozenset[str] = frozenset()
        self._exit_code: int | None = None
        self.hello: dict[str, Any] = {}
        self.late_reports: list[Any] = []

    @classmethod
    def start(
        cls,
        folders: Sequence[Path],
        *,
        heap_mb: int = DEFAULT_HEAP_MB,
        options: Sequence[str] = (),
        is_driver: bool = False,
        on_line: Callable[[str], None] | None = None,
        connect_home: Path | None = None,
    ) -> PluginHost:
        """Start a JVM and let it find the plugins of `folders`.

        Args:
            folders: as in Kafka Connect's `plugin.path`: each has one folder, or jar, for each plugin. Only plugins
                that their jars list in `META-INF/services` are found.
            heap_mb: the JVM's heap.
            options: more flags of the JVM.
            is_driver: the JVM lives for seconds and copies no records, so it need not compile well.
            on_line: gets each line of output, in a thread of the host.
            connect_home: a folder with all jars of a Kafka 4.1 or newer; None: those of the lock.

        Raises:
            JavaVersionError: no Java 17, or a Kafka Connect runtime that is too old.
            JarsError: the runtime's jars could not be fetched.
            JvmGoneError, JavaBlockedError: the JVM did not start.
        """
        java = _java()
        jars = [HELPER, *runtime_jars(connect_home)]
        flags = _flags(heap_mb, is_driver, options)
        # The size of the heap does not matter to an archive, so hosts of every size share one.
        archive = ClassDataArchive(java, jars, [flag for flag in flags if not flag.startswith("-Xmx")])
        archive_flags = archive.flags()
        class_path = os.pathsep.join(map(str, jars))

        def argv_for(folder: Path) -> list[str]:
            # Plugins unpack native libraries there, and leave them behind when they are halted.
            own = [f"-XX:ErrorFile={folder}/hs_err_%p.log", f"-Djava.io.tmpdir={folder}"]
            return [str(java.executable), *flags, *archive_flags, *own, "-cp", class_path, MAIN, str(folder / "s")]

        try:
            process = HostProcess(argv_for, on_line)
        except BaseException:
            archive.discard()
            raise
        connection = None
        try:
            connection = process.accept(START_TIMEOUT_S)
            if connection is None:
                raise _not_started(process, java)
            host = cls(process, Wire(connection), archive)
            host._greet(folders)
            return host
        except BaseException:
            if connection is not None:
                connection.close()
            process.end(0)
            process.remove_folder()
            archive.discard()
            raise

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        return self._process.pid

    def call(
        self, op: str, body: Buffer | Sequence[Buffer] | None = None, timeout_s: float | None = None, **members: Any
    ) -> Reply:
        """Send a request and return its reply.

        Args:
            op: an operation of the host: `Main.java` lists them.
            body: bytes that go with the request.
            timeout_s: how long the plugin may take; None: as long as it wants.
            members: more members of the request's JSON.

        Raises:
            JavaPluginError, JavaRetriableError, JavaDataError, ConfigError: the plugin threw an exception. The host
                can be used further.
            JvmGoneError, JavaBlockedError: the JVM has ended, or was killed.
        """
        self._learn(members)
        pieces = [] if body is None else [body] if isinstance(body, Buffer) else body
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if self._exit_code is not None:
            raise self._gone(op)
        try:
            self._wire.send({"op": op, **members}, pieces, deadline)
            reply = self._wire.receive(deadline)
        except ClosedError:
            raise self._gone(op) from None
        except TimeoutError:
            raise self._blocked(op, timeout_s or 0.0) from None
        error = reply.result.get("error")
        if error is not None:
            failure = plugin_error(error, self.subject)
            self._hide.hide_in_error(failure)
            raise failure
        result = reply.result["result"]
        if isinstance(result, dict):
            fill_in(result)
            hide(result, self._hide)
        return Reply(result if isinstance(result, dict) else {"value": result}, reply.body)

    def hide_values(self, values: Iterable[str]) -> None:
        """Hide more secrets in what the plugin prints and in messages."""
        self._secrets.update(value for value in values if value)
        self._hide = self._process.hide = Redactor(self._secrets)

    def close(self, call_timeout_s: float = CALL_TIMEOUT_S) -> list[str]:
        """Stop task and connector, and end the JVM; return what went wrong in that, as Connect would log it.

        Records that a sink task reports as errant now are part of it, and in `late_reports`.

        Idempotent, and never an error: what a run has copied does not depend on how a plugin stops.

        Args:
            call_timeout_s: how long each call of the plugin may take.
        """
        if self._exit_code is not None:
            return []
        warnings: list[str] = []
        try:
            is_archiving = self._archive.is_writing
            timeout_s = 4 * call_timeout_s + EXIT_TIMEOUT_S
            call_ms = int(call_timeout_s * 1000)
            closed = self.call("close", timeout_s=timeout_s, orderly=is_archiving, call_ms=call_ms)
            self.late_reports = closed.result.get("errant", [])
            warnings = [*closed.result["warnings"], *map(_late_report, self.late_reports)]
            self._end(ARCHIVE_TIMEOUT_S if is_archiving else EXIT_TIMEOUT_S)
        except ConnectError as error:
            warnings.append(error.message)
            self._end(0)
        return [self._hide(warning) for warning in warnings]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _greet(self, folders: Sequence[Path]) -> None:
        """Read the helper's first message, and let it load the plugins."""
        for folder in folders:
            if "," in str(folder):
                raise ConfigError(
                    f"The path {folder} has a comma, which separates the paths of plugin.path.",
                    code="java.plugin_path",
                    config_path="plugin.path",
                    suggestion="Use a folder without a comma in its path.",
                )
        try:
            self.hello = self._wire.receive(time.monotonic() + START_TIMEOUT_S).result
        except ClosedError:
            raise self._gone("start") from None
        except TimeoutError:
            raise self._blocked("start", START_TIMEOUT_S) from None
        if self.hello.get("hello") != WIRE_VERSION:
            raise InternalError(f"The plugin host speaks version {self.hello.get('hello')}, not {WIRE_VERSION}.")
        self.call("init", timeout_s=START_TIMEOUT_S, folders=[str(folder) for folder in folders])

    def _learn(self, members: dict[str, Any]) -> None:
        """Remember which plugin runs here, and which secrets it gets: it may print them."""
        if "config" in members:
            configs = (members["config"], members.get("task", {}))
            self._secrets.update(secret_values(*configs, secret_names=self.secret_names))
            self._hide = self._process.hide = Redactor(self._secrets)
        connector = members.get("config", {}).get("connector.class")
        if connector:
            task = f", task {members['task_id']}" if "task_id" in members else ""
            self.subject = f"{connector}{task}"

    def _gone(self, op: str) -> ConnectError:
        code = self._exit_code if self._exit_code is not None else self._process.end(EXIT_TIMEOUT_S)
        where = self._process.crash_frame()
        self._end(0)
        lines = self._process.last_lines()
        if where:  # Java's own report of the crash, which names a file that is removed.
            lines = [line for line in lines if not line.startswith("#")]
        how = f"with exit code {code}" if code >= 0 else f"by {_signal_name(-code)}"
        crash = f" It crashed in {where}." if where else ""
        is_full = any("OutOfMemoryError" in line for line in lines)
        return JvmGoneError(
            f"The JVM of {self.subject} has ended {how} during {op!r}.{crash} {_quoted(lines)}",
            suggestion="Give it more memory: airflow.java.heap.mb."
            if is_full
            else "Look for the reason in its last lines; a plugin may end its own JVM.",
        )

    def _blocked(self, op: str, timeout_s: float) -> ConnectError:
        stack = self._process.stack_of(*_THREADS)
        self._end(0)
        shown = f"Its threads were here:\n{stack}" if stack else "Its JVM did not answer either."
        return JavaBlockedError(
            f"{self.subject} did not return from {op!r} within {timeout_s:g} s, and its JVM was ended. {shown}",
            suggestion="Find out what it waits for: the stack names the call.",
        )

    def _end(self, timeout_s: float) -> None:
        """End the JVM, and keep its archive if it had the time to write it."""
        if self._exit_code is not None:
            return
        self._wire.close()
        self._exit_code = self._process.end(timeout_s)
        self._process.remove_folder()
        if self._exit_code == 0:
            self._archive.keep()
        else:
            self._archive.discard()


def plugin_error(error: dict[str, Any], subject: str) -> ConnectError:
    """The typed error for the member `error` of a reply, or for a failed record of a frame.

    Args:
        error: with `kind`, `message`, `class` and `chain`: the exception and its causes, the outermost first.
        subject: the plugin.
    """
    kind = error.get("kind", "data")
    causes = "; caused by ".join(error.get("chain") or [f"{error.get('class', '')}: {error.get('message', '')}"])
    where = f" in {error['executing']}" if error.get("executing") else ""
    message = f"{subject} failed{where}: {causes.rstrip('.')}."
    match kind:
        case "retriable":
            return JavaRetriableError(message)
        case "data":
            return JavaDataError(message)
        case "config":
            return ConfigError(message, code="java.config")
        case "version":
            return JavaVersionError(
                message,
                suggestion="Plugins need Kafka Connect 4.1 or newer: check airflow.java.connect.home.",
            )
        case "group":
            return JavaGroupError(
                f"{subject}: {error.get('message', '').rstrip('.')}.",
                suggestion="Nothing that was not in the target before counts as copied: the next run continues at the"
                " offsets of the group. Stop other consumers of the group, and let all tasks of a run run at the same"
                " time (tasks.max must not exceed the cores of the executors).",
            )
        case "host":
            return InternalError(f"The plugin host has a defect. {message}\n{error.get('stack', '')}")
        case _:
            return JavaPluginError(
                message, suggestion="The log airflow_connect.java has what the plugin says about it."
            )


def _java() -> Java:
    try:
        return find_java()
    except AccessError as error:
        raise JavaVersionError(f"Java plugins need a Java: {error.message}", suggestion=error.suggestion) from error


def _flags(heap_mb: int, is_driver: bool, options: Sequence[str]) -> list[str]:
    compilers = ["-XX:TieredStopAtLevel=1"] if is_driver else []
    return [
        f"-Xmx{heap_mb}m",
        "-XX:MaxDirectMemorySize=128m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-XX:-CreateCoredumpOnCrash",
        *(f"-D{name}.encoding=UTF-8" for name in ("file", "stdout", "stderr")),  # whatever the locale is
        *compilers,
        *options,
    ]


def _not_started(process: HostProcess, java: Java) -> ConnectError:
    is_running = not process.has_ended()
    code = process.end(0)
    said = _quoted(process.last_lines())
    suggestion = "Check airflow.java.options and the memory of the machine."
    if is_running:
        text = (
            f"The JVM for Java plugins ({java.home}) did not start within {START_TIMEOUT_S:g} s, and was ended. {said}"
        )
        return JavaBlockedError(text, suggestion=suggestion)
    text = f"The JVM for Java plugins did not start ({java.home}, exit code {code}). {said}"
    return JvmGoneError(text, suggestion=suggestion)


def _late_report(errant: list[Any]) -> str:
    topic, partition, offset, error = errant
    causes = "; caused by ".join(error["chain"])
    return f"the record {topic}-{partition}@{offset} was reported as errant when the task was stopped: {causes}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _quoted(lines: Sequence[str]) -> str:
    if not lines:
        return "It printed nothing."
    return "Its last lines:\n" + "\n".join(lines[-_LINES_IN_MESSAGES:]) + "\n"
