r"""HDFS's refusals: reading what hdfs-native raises, what is worth another try, and refusals as sentences.

hdfs-native has few kinds of exception: FileNotFoundError and FileExistsError by name, OSError where a connection fails,
and RuntimeError for the rest, whose text is Rust's: `RPCError("java.class.Name", "message\n\tat stack...")`,
`DataTransferError("...")`, `OperationFailed("...")`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_connect.api.config_values import shortened
from airflow_connect.api.errors import AccessError, ConfigError, ConnectError, DataError, UnavailableError

_RPC = re.compile(r'RPCError\("(?P<kind>[^"]+)", "(?P<text>.*)"\)\s*', re.DOTALL)
_VARIANT = re.compile(r'(?P<kind>\w+)\((?:"(?P<text>.*)"|(?P<other>.*))\)\s*', re.DOTALL)

NO_DATA_NODE = "could only be written to 0 of the"
DATA_NODE_AWAY = "DataNodeAway"
"""Kind of a refusal: a connection failed that was not one to the NameNode."""

# Java's names without package, and Rust's. The rest of RPC errors is Java's refusal and stays one.
TRANSIENT = frozenset(
    {
        "BlocksNotFound",
        "ConnectException",
        "ConnectTimeoutException",
        "DataTransferError",
        "EOFException",
        "InterruptedIOException",
        "NoAnswer",
        "NoRouteToHostException",
        "NotReplicatedYetException",
        "ObserverRetryOnActiveException",
        "OSError",
        "OperationFailed",
        "RetriableException",
        "RetryStartFileException",
        "SafeModeException",
        "ServerNotRunningYetException",
        "ServerTooBusyException",
        "SocketException",
        "SocketTimeoutException",
        "StandbyException",
        "TimeoutError",
    }
)
LOGIN = frozenset(
    {
        "AuthorizationException",
        "GSSAPIError",
        "InvalidToken",
        "KerberosAuthException",
        "LoginException",
        "NoSASLMechanism",
        "SASLError",
        "SaslException",
    }
)
NOT_LOGGED_IN = ("Client cannot authenticate via", "SIMPLE authentication is not enabled")
"""How AccessControlException begins where nobody was asked for a permission yet."""
UNREACHABLE = frozenset({"ConnectException", "ConnectTimeoutException", "NoRouteToHostException", "OSError"})
QUOTA = frozenset({"DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"})
BAD_NAME = frozenset({"InvalidPathException", "PathComponentTooLongException", "MaxDirectoryItemsExceededException"})
NO_ANSWER = frozenset({"NoAnswer", "SocketTimeoutException"})
GONE = frozenset({"FileNotFoundError", "LeaseExpiredException"})
"""A file that was being written is no longer there, or another process took it over."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an exception of hdfs-native says.

    Attributes:
        kind: name of a Java exception without its package, of a kind of Rust error, or of a Python exception.
        text: the first line of its message.
    """

    kind: str
    text: str

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed in a moment."""
        return self.kind in TRANSIENT or NO_DATA_NODE in self.text

    def __str__(self) -> str:
        """`SafeModeException: text`."""
        return f"{self.kind}: {self.text.rstrip('.')}" if self.text else self.kind


class NoAnswerError(TimeoutError):
    """HDFS has not answered in time; whether it did what it was asked for is not known. See hdfs_answers.py."""


class JavaRefusal(RuntimeError):  # noqa: N818 (it carries an exception of Java's, which has the name)
    """An exception of Hadoop's own client.

    Attributes:
        kind: its name without package.
        text: its message.
    """

    def __init__(self, kind: str, text: str) -> None:
        """See the attributes."""
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


def read_refusal(error: Exception) -> Refusal:
    """What an exception of hdfs-native, or of Hadoop's own client, says."""
    if isinstance(error, JavaRefusal):
        return Refusal(error.kind, _first_line(error.text).partition("; For more details")[0])
    if isinstance(error, NoAnswerError):
        return Refusal("NoAnswer", str(error))
    if isinstance(error, OSError):
        exact = isinstance(error, (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError))
        return Refusal(type(error).__name__ if exact else "OSError", _first_line(str(error)))
    text = str(error)
    found = _RPC.fullmatch(text) or _VARIANT.fullmatch(text)
    if found is None:
        return Refusal(type(error).__name__, _first_line(text))
    message = found["text"] if found["text"] is not None else found["other"]
    return Refusal(found["kind"].rpartition(".")[2].rpartition("$")[2], _first_line(_unescaped(message or "")))


def error_for(refusal: Refusal, operation: str, place: str) -> ConnectError:
    """The typed error that says what is missing.

    Args:
        refusal: what HDFS said.
        operation: what was tried, `rename`.
        place: URL of what it was tried on.
    """
    head = f"HDFS refused to {operation} {place} with {refusal}."
    if refusal.kind in LOGIN or refusal.text.startswith(NOT_LOGGED_IN):
        return AccessError(
            head,
            code="hdfs.login",
            config_path="connect.hdfs.principal",
            suggestion="Check connect.hdfs.principal, connect.hdfs.keytab, the clock and krb5.conf of this machine.",
        )
    if refusal.kind == "AccessControlException":
        return AccessError(
            head,
            code="hdfs.forbidden",
            suggestion="Give the user named there the permission, or run as another one (HADOOP_USER_NAME). "
            f"{NEXT_RUN}",
        )
    if refusal.kind in QUOTA:
        return AccessError(
            head,
            code="hdfs.quota",
            suggestion=f"Free space or names below that directory, or have its quota raised. {NEXT_RUN}",
        )
    if refusal.kind in BAD_NAME:
        return DataError(
            head,
            code="data.hdfs_name",
            suggestion="HDFS allows no ':' in names and bounds their length: choose other names of directories.",
        )
    if refusal.kind in ("ParentNotDirectoryException", "NotADirectoryError"):
        return AccessError(
            head,
            code="hdfs.not_a_directory",
            config_path="topics.dir",
            suggestion="A file stands where a directory has to be: move it away, or choose another topics.dir.",
        )
    if refusal.kind in ("InvalidArgument", "UrlParseError", "InvalidPath", "UnknownHostException"):
        return _unusable(refusal, operation, place)
    if refusal.kind == "UnsupportedFeature":
        return AccessError(
            head,
            code="hdfs.not_offered",
            suggestion="hdfs-native cannot write there: choose a directory outside of encryption zones.",
        )
    if refusal.kind in GONE:
        return UnavailableError(
            f"The temporary file {place} was deleted, or taken over by another process, before this run could "
            f"{operation} it.",
            code="hdfs.staged_file_gone",
            suggestion="Find what deletes files below +tmp, such as a clean-up job, and keep it away from there. "
            f"{NEXT_RUN}",
        )
    if refusal.kind == "IOException":  # Java's word for anything that went wrong in the server
        return UnavailableError(head, code="hdfs.failed", suggestion=f"Look it up in the NameNode's log. {NEXT_RUN}")
    return AccessError(head, code="hdfs.refused", suggestion=f"Look it up in the NameNode's log. {NEXT_RUN}")


NEXT_RUN = "Nothing is lost: the next run continues where this one ended."


def away(refusal: Refusal, operation: str, place: str, waited_s: float) -> UnavailableError:
    """The error for what did not pass within the time that it was given."""
    waited = f" for {waited_s:.0f} s" if waited_s >= 1 else ""
    head = f"HDFS could not {operation} {place}{waited}: {refusal}."
    if refusal.kind == "SafeModeException":
        return UnavailableError(
            head,
            code="hdfs.safe_mode",
            suggestion="Wait until the NameNode has left safe mode, or let its operator see why it does not. "
            f"{NEXT_RUN}",
        )
    if refusal.kind == "StandbyException":
        return UnavailableError(
            head, code="hdfs.standby", suggestion=f"No NameNode of the name service is active. {NEXT_RUN}"
        )
    if NO_DATA_NODE in refusal.text:
        return UnavailableError(
            f"HDFS could not {operation} {place}{waited}: the NameNode has no DataNode that can take the data "
            f"({shortened(refusal.text)}).",
            code="hdfs.no_data_node",
            suggestion=f"Check that DataNodes are up and have room: `hdfs dfsadmin -report`. {NEXT_RUN}",
        )
    if refusal.kind in (DATA_NODE_AWAY, "DataTransferError", "BlocksNotFound"):
        return UnavailableError(
            f"HDFS could not {operation} {place}{waited}: the NameNode answers, but no DataNode does "
            f"({shortened(refusal.text)}).",
            code="hdfs.no_data_node",
            suggestion="Check that DataNodes are up, and that this machine reaches the addresses and ports under which "
            f"the NameNode knows them: `hdfs dfsadmin -report`. {NEXT_RUN}",
        )
    if refusal.kind in NO_ANSWER:
        return UnavailableError(
            head,
            code="hdfs.no_answer",
            suggestion="Something there takes requests and does not work on them: look at the NameNode's process, its "
            f"disks and its log, and at what lies between. {NEXT_RUN}",
        )
    if refusal.kind in UNREACHABLE:
        return UnavailableError(
            head,
            code="hdfs.unreachable",
            config_path="store.url",
            suggestion=f"Check the address in store.url, and that this machine reaches the NameNode. {NEXT_RUN}",
        )
    return UnavailableError(head, code="hdfs.unavailable", suggestion=NEXT_RUN)


def _unusable(refusal: Refusal, operation: str, place: str) -> ConfigError:
    """What the client itself refuses, before anything is sent."""
    if refusal.kind == "UnknownHostException":
        return ConfigError(
            f"Neither the network nor the configuration of Hadoop knows {refusal.text}, the host or name service of"
            f" {place}.",
            code="hdfs.name_service",
            config_path="store.url",
            suggestion="Correct store.url, or name the folder with the hdfs-site.xml that describes the name service in"
            " hadoop.conf.dir.",
        )
    if "No NameNode hosts" in refusal.text:
        return ConfigError(
            f"No configuration of Hadoop knows the name service of {place}.",
            code="hdfs.name_service",
            config_path="store.url",
            suggestion="Name the folder with its hdfs-site.xml in hadoop.conf.dir, or write the port of a NameNode into"
            " store.url.",
        )
    return ConfigError(
        f"HDFS cannot {operation} {place}: {refusal}.",
        code="hdfs.url",
        config_path="store.url",
        suggestion="Correct store.url, or the configuration in hadoop.conf.dir.",
    )


def _first_line(text: str) -> str:
    """Without Java's stack trace."""
    return re.split(r"\n\s*at ", text, maxsplit=1)[0].strip().replace("\n", " ")


def _unescaped(text: str) -> str:
    """Rust's debug form of a string, undone as far as messages need it."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
