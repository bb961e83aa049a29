r"""HDFS's refusals: reading hdfs-native's exceptions, which are worth a retry, and messages for users.

hdfs-native raises few kinds of exceptions: FileNotFoundError, FileExistsError, OSError if a connection fails, and
RuntimeError for the rest, with Rust's text: `RPCError("java.class.Name", "message\n\tat stack...")`,
`DataTransferError("...")`, `OperationFailed("...")`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_connect.api.config.values import shortened
from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError, UnavailableError

_RPC = re.compile(r'RPCError\("(?P<kind>[^"]+)", "(?P<text>.*)"\)\s*', re.DOTALL)
_VARIANT = re.compile(r'(?P<kind>\w+)\((?:"(?P<text>.*)"|(?P<other>.*))\)\s*', re.DOTALL)

NO_DATA_NODE = "could only be written to 0 of the"
DATA_NODE_AWAY = "DataNodeAway"
"""Kind of a refusal: a connection failed, and it was not to the NameNode."""

# Java's names without package, and Rust's. All other RPC errors are final refusals by Java.
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
"""How AccessControlException begins if the login failed before any permission was checked."""
UNREACHABLE = frozenset({"ConnectException", "ConnectTimeoutException", "NoRouteToHostException", "OSError"})
QUOTA = frozenset({"DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"})
BAD_NAME = frozenset({"InvalidPathException", "PathComponentTooLongException", "MaxDirectoryItemsExceededException"})
NO_ANSWER = frozenset({"NoAnswer", "SocketTimeoutException"})
GONE = frozenset({"FileNotFoundError", "LeaseExpiredException"})
"""A file that was being written no longer exists, or another process took it over."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The contents of an exception of hdfs-native.

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
    """HDFS did not answer in time; whether it carried out the request is unknown. See request_timeouts.py."""


class JavaRefusal(RuntimeError):  # noqa: N818 (it carries a Java exception, which has its own name)
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
    """The contents of an exception of hdfs-native, or of Hadoop's own client."""
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
    """The typed error for a refusal, with what to do.

    Args:
        refusal: HDFS's refusal.
        operation: what was attempted, such as `rename`.
        place: URL that it was attempted on.
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
            suggestion="Give the user named there the permission, or run as another user (HADOOP_USER_NAME). "
            f"{NEXT_RUN}",
        )
    if refusal.kind in QUOTA:
        return AccessError(
            head,
            code="hdfs.quota",
            suggestion=f"Delete data or files below that directory, or have its quota raised. {NEXT_RUN}",
        )
    if refusal.kind in BAD_NAME:
        return DataError(
            head,
            code="data.hdfs_name",
            suggestion="HDFS does not allow ':' in names and limits their length: choose other directory names.",
        )
    if refusal.kind in ("ParentNotDirectoryException", "NotADirectoryError"):
        return AccessError(
            head,
            code="hdfs.not_a_directory",
            config_path="topics.dir",
            suggestion="A file exists where a directory is needed: move it away, or choose another topics.dir.",
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
    if refusal.kind == "IOException":  # Java's exception for any failure in the server
        return UnavailableError(head, code="hdfs.failed", suggestion=f"Look it up in the NameNode's log. {NEXT_RUN}")
    return AccessError(head, code="hdfs.refused", suggestion=f"Look it up in the NameNode's log. {NEXT_RUN}")


NEXT_RUN = "Nothing is lost: the next run continues where this one ended."


def away(refusal: Refusal, operation: str, place: str, waited_s: float) -> UnavailableError:
    """The error for a temporary refusal that did not pass in time."""
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
            f"HDFS could not {operation} {place}{waited}: the NameNode has no DataNode that can store the data "
            f"({shortened(refusal.text)}).",
            code="hdfs.no_data_node",
            suggestion=f"Check that DataNodes are up and have free space: `hdfs dfsadmin -report`. {NEXT_RUN}",
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
            suggestion="The server accepts requests but does not process them: check the NameNode's process, disks and"
            " log, "
            f"and the network in between. {NEXT_RUN}",
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
    """The error for what the client refuses before it sends anything."""
    if refusal.kind == "UnknownHostException":
        return ConfigError(
            f"Neither the network nor the configuration of Hadoop knows {refusal.text}, the host or name service of"
            f" {place}.",
            code="hdfs.name_service",
            config_path="store.url",
            suggestion="Correct store.url, or specify the folder with the hdfs-site.xml that describes the name"
            " service in"
            " hadoop.conf.dir.",
        )
    if "No NameNode hosts" in refusal.text:
        return ConfigError(
            f"No configuration of Hadoop knows the name service of {place}.",
            code="hdfs.name_service",
            config_path="store.url",
            suggestion="Set hadoop.conf.dir to the folder with its hdfs-site.xml, or write the port of a NameNode into"
            " store.url.",
        )
    return ConfigError(
        f"HDFS cannot {operation} {place}: {refusal}.",
        code="hdfs.url",
        config_path="store.url",
        suggestion="Correct store.url, or the configuration in hadoop.conf.dir.",
    )


def _first_line(text: str) -> str:
    """The first line, without Java's stack trace."""
    return re.split(r"\n\s*at ", text, maxsplit=1)[0].strip().replace("\n", " ")


def _unescaped(text: str) -> str:
    """Undo Rust's debug form of a string, as far as messages need it."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
