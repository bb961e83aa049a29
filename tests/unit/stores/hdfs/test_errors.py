"""What hdfs-native raises, recorded from a real NameNode, becomes a typed error with a sentence."""

from __future__ import annotations

import pytest

from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError, UnavailableError
from airflow_connect.stores.hdfs.errors import JavaRefusal, NoAnswerError, Refusal, away, error_for, read_refusal

GONE = "hdfs.staged_file_gone"
LOGIN = "hdfs.login"
NAMENODE = "org.apache.hadoop.hdfs.server.namenode"
ACCESS_CONTROL = "org.apache.hadoop.security.AccessControlException"
STACK = "\\n\\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem.checkLease(FSNamesystem.java:3223)\\n\\tat org.x"


def rpc(kind: str, text: str) -> RuntimeError:
    return RuntimeError(f'RPCError("{kind}", "{text}{STACK}")')


SAFE = rpc(
    "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
    'Cannot create file/s. Name node is in safe mode.\\nIt was turned on manually. Use \\"hdfs dfsadmin\\" to leave',
)
NO_NODE = rpc("java.io.IOException", "File /a could only be written to 0 of the 1 minReplication nodes.")

CASES = [
    (SAFE, True, UnavailableError, "hdfs.safe_mode"),
    (NO_NODE, True, UnavailableError, "hdfs.no_data_node"),
    (rpc("org.apache.hadoop.ipc.StandbyException", "Operation category WRITE"), True, UnavailableError, "hdfs.standby"),
    (OSError("Connection refused (os error 111)"), True, UnavailableError, "hdfs.unreachable"),
    (NoAnswerError("the request was not answered"), True, UnavailableError, "hdfs.no_answer"),
    (JavaRefusal("SocketTimeoutException", "10000 millis timeout"), True, UnavailableError, "hdfs.no_answer"),
    (RuntimeError('DataTransferError("All nodes failed for write")'), True, UnavailableError, "hdfs.no_data_node"),
    (RuntimeError('OperationFailed("Failed to complete file in time")'), True, UnavailableError, "hdfs.unavailable"),
    (rpc(ACCESS_CONTROL, "Permission denied"), False, AccessError, "hdfs.forbidden"),
    (rpc("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "quota=2"), False, AccessError, "hdfs.quota"),
    (rpc("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "1 KB"), False, AccessError, "hdfs.quota"),
    (rpc("org.apache.hadoop.fs.InvalidPathException", "Invalid path name /a/x:y"), False, DataError, "data.hdfs_name"),
    (rpc("org.apache.hadoop.fs.ParentNotDirectoryException", "/a"), False, AccessError, "hdfs.not_a_directory"),
    (rpc(f"{NAMENODE}.LeaseExpiredException", "x"), False, UnavailableError, GONE),
    (FileNotFoundError("File does not exist: /open/2 (inode 1)\n\tat org.x"), False, UnavailableError, GONE),
    (rpc("java.io.IOException", "Something else"), False, UnavailableError, "hdfs.failed"),
    (rpc("java.lang.IllegalStateException", "Something else"), False, AccessError, "hdfs.refused"),
    (RuntimeError('SASLError("no credentials")'), False, AccessError, "hdfs.login"),
    (RuntimeError('InvalidArgument("No NameNode hosts found")'), False, ConfigError, "hdfs.name_service"),
    (RuntimeError('InvalidArgument("Only `hdfs` and `viewfs` schemes are supported")'), False, ConfigError, "hdfs.url"),
    (RuntimeError('UnsupportedFeature("File encryption")'), False, AccessError, "hdfs.not_offered"),
    (RuntimeError("nobody knows this text"), False, AccessError, "hdfs.refused"),
    (JavaRefusal("ConnectException", "Call failed"), True, UnavailableError, "hdfs.unreachable"),
    (JavaRefusal("SafeModeException", "Cannot create"), True, UnavailableError, "hdfs.safe_mode"),
    (JavaRefusal("AccessControlException", "Permission denied"), False, AccessError, "hdfs.forbidden"),
    (JavaRefusal("AccessControlException", "Client cannot authenticate via:[KERBEROS]"), False, AccessError, LOGIN),
    (rpc(ACCESS_CONTROL, "SIMPLE authentication is not enabled."), False, AccessError, LOGIN),
    (JavaRefusal("LoginException", "KerberosAuthException: no keytab"), False, AccessError, LOGIN),
    (JavaRefusal("UnknownHostException", "mycluster"), False, ConfigError, "hdfs.name_service"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("raised", "transient", "kind", "code"), CASES, ids=[c[3] + str(n) for n, c in enumerate(CASES)]
)
def test_refusal_becomes_a_typed_error(raised: Exception, transient: bool, kind: type[ConnectError], code: str) -> None:
    refusal = read_refusal(raised)
    assert refusal.is_transient == transient
    error = away(refusal, "write", "hdfs://h:1/a", 3) if transient else error_for(refusal, "write", "hdfs://h:1/a")

    assert (type(error), error.code) == (kind, code)
    assert "hdfs://h:1/a" in error.message
    assert error.message.endswith(".")
    assert error.suggestion.endswith(".")
    assert "\tat" not in str(error)
    assert "\\n" not in str(error)


def test_text_of_java_is_its_first_lines_without_the_stack() -> None:
    assert read_refusal(SAFE) == Refusal(
        "SafeModeException",
        'Cannot create file/s. Name node is in safe mode. It was turned on manually. Use "hdfs dfsadmin" to leave',
    )


def test_pointer_to_a_wiki_is_no_part_of_what_java_said() -> None:
    said = JavaRefusal("ConnectException", "Call From a to b failed; For more details see:  http://wiki\n\tat org.x")
    assert read_refusal(said) == Refusal("ConnectException", "Call From a to b failed")


def test_deleted_temporary_file_is_told_without_words_about_leases() -> None:
    text = "File does not exist: /a (inode 7) Holder hdfs_native_client-1 does not have any open files."
    error = error_for(Refusal("LeaseExpiredException", text), "close", "hdfs://h:1/a")
    assert error.message == (
        "The temporary file hdfs://h:1/a was deleted, or taken over by another process, before this run could close it."
    )
    assert error.suggestion.startswith("Find what deletes files below +tmp")


def test_data_nodes_that_fail_are_told_in_few_words_and_not_as_a_wrong_address() -> None:
    listed = "DatanodeInfoProto { id: DatanodeIdProto { ip_addr: 127.0.0.1 } } " * 40
    error = away(Refusal("DataTransferError", f"All DataNodes failed: [{listed}]"), "read", "hdfs://h:1/a", 3)
    assert "the NameNode answers, but no DataNode does (All DataNodes failed" in error.message
    assert len(error.message) < 400 and error.config_path == ""
