"""Parameters of JDBC drivers, as they stand in a `connection.url` or as `connection.*` keys, for Python's drivers.

Each database has a table: the JDBC name, and what becomes of it. A parameter that only tunes the Java driver has no
effect here and is reported. One that nobody knows is refused, because it could be a misspelt `sslmode`.

Sources: pgjdbc "Connection parameters" (42.7), MySQL Connector/J 8 and 9 "Configuration properties", MariaDB
Connector/J 3 "About", sqlite-jdbc `SQLiteConfig.Pragma`, Microsoft JDBC driver 12 "Setting the connection properties",
libpq "Parameter key words" (18), PyMySQL `Connection`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError

_MAX_SHOWN = 60
ZERO_DATES = "zero_dates"
"""Not an argument of the driver: what sources make of MySQL's date 0000-00-00; `urls.py` takes it out."""


@dataclass(slots=True)
class Translated:
    """The parameters of one URL for a Python driver.

    Attributes:
        arguments: keyword arguments of the driver's `connect`.
        user, password: credentials found among the parameters, or None.
        database: the database, if a parameter names it; else "".
        ignored: names of parameters without effect.
        search_path, options: parts of PostgreSQL's `options`.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    user: str | None = None
    password: str | None = None
    database: str = ""
    ignored: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)


_Translate = Callable[[Translated, str, str], None]
"""Takes the result, the parameter's name and its value; raises ConfigError if the value is not valid."""


def translate(database: str, parameters: Mapping[str, str], key: str) -> Translated:
    """The parameters of a JDBC URL for the Python driver of a database.

    Args:
        database: one of the names in `TABLES`.
        parameters: by name, as written. Names are case-insensitive for SQL Server, case-sensitive otherwise.
        key: the configuration key to blame.

    Raises:
        ConfigError: a parameter is unknown, not supported, or its value is not valid. Values are not shown, because
            they may be secrets.
    """
    table = TABLES[database]
    folded = {name.lower(): name for name in table} if database in _CASE_INSENSITIVE else None
    result = Translated()
    for given, value in parameters.items():
        name = folded.get(given.lower(), given) if folded is not None else given
        rule = table.get(name)
        if rule is None:
            raise _unknown(database, given, value, key)
        if rule is IGNORED:
            result.ignored.append(given)
            continue
        try:
            rule(result, name, value)
        except ValueError as error:
            raise ConfigError(
                f"The parameter {given} of the database connection must be {error}.",
                code="database.parameter",
                suggestion=f"Correct {given} in {key}.",
                config_path=key,
            ) from None
    if result.options:
        given_options = result.arguments.get("options", "")
        result.arguments["options"] = " ".join([given_options, *result.options]).strip()
    return result


def _unknown(database: str, name: str, value: str, key: str) -> ConfigError:
    shown = name if len(name) <= _MAX_SHOWN else name[:_MAX_SHOWN] + "..."
    near = did_you_mean(nearest(name, TABLES[database]))
    if not value and not near:  # What follows an & in a password looks like one.
        return ConfigError(
            f"A parameter of the database connection has no value, and is not known for {database}. Its name is not"
            " shown, because it may be the end of a password.",
            code="database.parameter",
            suggestion=f"Write & as %26 in a password in {key}, or set connection.password instead. If it is a"
            f" parameter, remove it: {page_url('connectors/databases')} has those that are known.",
            config_path=key,
        )
    return ConfigError(
        f"The parameter {shown} of the database connection is not known for {database}.",
        code="database.parameter",
        suggestion=f"{near} Remove it from {key}, or write one of those at {page_url('connectors/databases')}".strip(),
        config_path=key,
    )


def IGNORED(result: Translated, name: str, value: str) -> None:  # noqa: N802 - a constant of the tables
    """The rule of a parameter that has no effect here."""


# --- building blocks ----------------------------------------------------------------------------------------------


def _as(argument: str) -> _Translate:
    """The same text under another name."""

    def rule(result: Translated, name: str, value: str) -> None:
        result.arguments[argument] = value

    return rule


def _whole(argument: str, *, per: int = 1) -> _Translate:
    """A whole number, divided by `per` and rounded up; 0 means no limit in JDBC and is left out."""

    def rule(result: Translated, name: str, value: str) -> None:
        if not value.strip().isdecimal() or len(value.strip()) > 10:
            raise ValueError("a whole number, not negative")
        number = int(value)
        if number:
            result.arguments[argument] = -(-number // per)

    return rule


def _boolean(value: str) -> bool:
    folded = value.strip().lower()
    if folded not in ("true", "false", ""):
        raise ValueError("true or false")
    return folded != "false"  # `?ssl` alone means true


def _one_of(argument: str, values: Mapping[str, Any]) -> _Translate:
    """One of several words, case-insensitive."""

    def rule(result: Translated, name: str, value: str) -> None:
        folded = {word.lower(): translated for word, translated in values.items()}
        if value.strip().lower() not in folded:
            raise ValueError(f"one of {', '.join(values)}")
        result.arguments[argument] = folded[value.strip().lower()]

    return rule


def _refused(instead: str) -> _Translate:
    """A parameter that cannot be honoured, and must not be ignored."""

    def rule(result: Translated, name: str, value: str) -> None:
        raise ValueError(f"left out: it is not supported here. {instead}")

    return rule


def _user(result: Translated, name: str, value: str) -> None:
    result.user = value


def _password(result: Translated, name: str, value: str) -> None:
    result.password = value


def _database(result: Translated, name: str, value: str) -> None:
    result.database = value


# --- PostgreSQL ---------------------------------------------------------------------------------------------------

_SSL_MODES = {mode: mode for mode in ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")}


def _pg_ssl(result: Translated, name: str, value: str) -> None:
    if _boolean(value):
        result.arguments.setdefault("sslmode", "verify-full")  # pgjdbc since 42.2.5


def _pg_search_path(result: Translated, name: str, value: str) -> None:
    result.options.append("-c search_path=" + _option_value(value))


def _pg_read_only(result: Translated, name: str, value: str) -> None:
    if _boolean(value):
        result.options.append("-c default_transaction_read_only=on")


def _option_value(value: str) -> str:
    """Blanks and backslashes in the value of a server option are escaped (PostgreSQL: "options")."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _pg_keep_alive(result: Translated, name: str, value: str) -> None:
    result.arguments["keepalives"] = int(_boolean(value))


_LIBPQ = (
    "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslpassword", "sslnegotiation", "sslcompression",
    "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version", "channel_binding", "require_auth",
    "application_name", "fallback_application_name", "client_encoding", "connect_timeout", "keepalives",
    "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "target_session_attrs",
    "load_balance_hosts", "gssencmode", "krbsrvname", "gsslib", "options", "passfile", "service", "hostaddr",
    "requirepeer",
)  # fmt: skip
"""Parameters of libpq, which may be written as they are."""

_POSTGRESQL: dict[str, _Translate] = {
    **{name: _as(name) for name in _LIBPQ},
    "user": _user,
    "password": _password,
    "PGDBNAME": _database,
    "ssl": _pg_ssl,
    "sslmode": _one_of("sslmode", _SSL_MODES),
    "sslNegotiation": _as("sslnegotiation"),
    "sslcert": _as("sslcert"),
    "ApplicationName": _as("application_name"),
    "connectTimeout": _whole("connect_timeout"),
    "loginTimeout": _whole("connect_timeout"),
    "currentSchema": _pg_search_path,
    "readOnly": _pg_read_only,
    "tcpKeepAlive": _pg_keep_alive,
    "gssEncMode": _as("gssencmode"),
    "channelBinding": _as("channel_binding"),
    "kerberosServerName": _as("krbsrvname"),
    "targetServerType": _one_of(
        "target_session_attrs",
        {
            "any": "any", "primary": "primary", "master": "primary", "secondary": "standby", "slave": "standby",
            "preferSecondary": "prefer-standby", "preferSlave": "prefer-standby", "preferPrimary": "any",
        },
    ),
    "loadBalanceHosts": _one_of("load_balance_hosts", {"true": "random", "false": "disable"}),
    "sslfactory": _refused("Use sslmode and sslrootcert."),
    "socketFactory": _refused("Connect by host and port."),
    "sslpasswordcallback": _refused("Use sslpassword."),
    "authenticationPluginClassName": _refused("Use connection.password."),
    **dict.fromkeys(
        (
            "adaptiveFetch", "adaptiveFetchMaximum", "adaptiveFetchMinimum", "allowEncodingChanges",
            "assumeMinServerVersion", "autosave", "binaryTransfer", "binaryTransferDisable", "binaryTransferEnable",
            "cancelSignalTimeout", "cleanupSavepoints", "databaseMetadataCacheFields",
            "databaseMetadataCacheFieldsMiB", "defaultRowFetchSize", "disableColumnSanitiser", "escapeSyntaxCallMode",
            "gssResponseTimeout", "gssUseDefaultCreds", "groupStartupParameters", "hideUnprivilegedObjects",
            "hostRecheckSeconds", "includeThreadIdInLog", "jaasApplicationName", "jaasLogin", "localSocketAddress",
            "loggerFile", "loggerLevel", "logServerErrorDetail", "logUnclosedConnections", "maxResultBuffer",
            "maxSendBufferSize", "preferQueryMode", "preparedStatementCacheQueries", "preparedStatementCacheSizeMiB",
            "prepareThreshold", "protocolVersion", "queryTimeout", "quoteReturningIdentifiers", "readOnlyMode",
            "receiveBufferSize", "replication", "reWriteBatchedInserts", "sendBufferSize", "socketTimeout",
            "sslResponseTimeout", "stringtype", "tcpNoDelay", "unknownLength", "useSpnego", "xmlFactoryFactory",
        ),
        IGNORED,
    ),
}  # fmt: skip

# --- MySQL and MariaDB --------------------------------------------------------------------------------------------

_MYSQL_MODES = {
    "disabled": "off", "disable": "off", "false": "off", "preferred": "prefer", "required": "on", "require": "on",
    "trust": "on", "true": "on", "verify_ca": "ca", "verify-ca": "ca", "verify_identity": "full", "verify-full": "full",
    "1": "on", "0": "off",
}  # fmt: skip


def _mysql_tls(result: Translated, name: str, value: str) -> None:
    mode = _MYSQL_MODES.get(value.strip().lower())
    if mode is None:
        raise ValueError("one of disabled, preferred, required, verify_ca, verify_identity")
    result.arguments["tls"] = mode


def _mysql_use_tls(result: Translated, name: str, value: str) -> None:
    # useSSL of Connector/J: true is "preferred" without a server that refuses; nothing is downgraded silently here.
    result.arguments.setdefault("tls", "on" if _boolean(value) else "off")


def _mysql_verify(result: Translated, name: str, value: str) -> None:
    if _boolean(value):
        result.arguments["tls"] = "ca"


def _mysql_charset(result: Translated, name: str, value: str) -> None:
    if value.strip().lower().replace("_", "").replace("-", "") not in ("utf8", "utf8mb4"):
        raise ValueError("UTF-8: text of every character set is read and written as UTF-8")


def _mysql_zero_dates(result: Translated, name: str, value: str) -> None:
    # Connector/J 8 and 9: EXCEPTION, CONVERT_TO_NULL, ROUND; 5.1: exception, convertToNull, round.
    words = {"exception": "exception", "converttonull": "null", "round": "round"}
    found = words.get(value.strip().lower().replace("_", ""))
    if found is None:
        raise ValueError("EXCEPTION, CONVERT_TO_NULL or ROUND")
    result.arguments[ZERO_DATES] = found


_MYSQL: dict[str, _Translate] = {
    "user": _user,
    "username": _user,
    "password": _password,
    "sslMode": _mysql_tls,
    "useSSL": _mysql_use_tls,
    "useSsl": _mysql_use_tls,
    "requireSSL": _mysql_use_tls,
    "verifyServerCertificate": _mysql_verify,
    "serverSslCert": _as("ssl_ca"),
    "ssl_ca": _as("ssl_ca"),
    "ssl_cert": _as("ssl_cert"),
    "ssl_key": _as("ssl_key"),
    "connectTimeout": _whole("connect_timeout", per=1000),
    "connect_timeout": _whole("connect_timeout"),
    "socketTimeout": _whole("read_timeout", per=1000),
    "localSocket": _as("unix_socket"),
    "characterEncoding": _mysql_charset,
    "charset": _mysql_charset,
    "serverRSAPublicKeyFile": _as("server_public_key"),
    "sessionVariables": _refused("Set variables for the database's user."),
    "trustCertificateKeyStoreUrl": _refused("Use serverSslCert with a PEM file."),
    "trustStore": _refused("Use serverSslCert with a PEM file."),
    "clientCertificateKeyStoreUrl": _refused("Use ssl_cert and ssl_key with PEM files."),
    "keyStore": _refused("Use ssl_cert and ssl_key with PEM files."),
    "zeroDateTimeBehavior": _mysql_zero_dates,
    "tinyInt1isBit": IGNORED,
    "yearIsDateType": IGNORED,
    **dict.fromkeys(
        (
            "allowLoadLocalInfile", "allowMultiQueries", "allowPublicKeyRetrieval", "autoReconnect",
            "autoReconnectForPools", "cachePrepStmts", "cacheServerConfiguration", "cacheResultSetMetadata",
            "cacheCallableStmts", "cacheDefaultTimeZone", "connectionCollation", "connectionTimeZone",
            "createDatabaseIfNotExist", "databaseTerm", "defaultFetchSize", "elideSetAutoCommits",
            "enabledTLSProtocols", "enabledSslProtocolSuites", "failOverReadOnly", "forceConnectionTimeZoneToSession",
            "initialTimeout", "jdbcCompliantTruncation", "logger", "maintainTimeStats", "maxReconnects", "maxRows",
            "netTimeoutForStreamingResults", "noAccessToProcedureBodies", "nullCatalogMeansCurrent",
            "nullDatabaseMeansCurrent", "passwordCharacterEncoding", "permitMysqlScheme", "preserveInstants",
            "prepStmtCacheSize", "prepStmtCacheSqlLimit", "profileSQL", "rewriteBatchedStatements",
            "sendFractionalSeconds", "serverTimezone", "tcpKeepAlive", "tcpNoDelay", "timezone", "tlsVersions",
            "transformedBitIsBoolean", "useAffectedRows", "useBatchMultiSend", "useBulkStmts", "useCompression",
            "useConfigs", "useCursorFetch", "useFractionalSeconds", "useGmtMillisForDatetimes",
            "useInformationSchema", "useJDBCCompliantTimezoneShift", "useLegacyDatetimeCode", "useLocalSessionState",
            "useLocalTransactionState", "useOldAliasMetadataBehavior", "useReadAheadInput", "useServerPrepStmts",
            "useTimezone", "useUnicode", "useUnbufferedInput", "useMysqlMetadata",
        ),
        IGNORED,
    ),
}  # fmt: skip

# --- SQLite, SQL Server, Oracle -----------------------------------------------------------------------------------


def _sqlite_busy(result: Translated, name: str, value: str) -> None:
    if not value.strip().isdecimal():
        raise ValueError("a whole number of milliseconds")
    result.arguments["timeout"] = int(value) / 1000


_SQLITE: dict[str, _Translate] = {
    "busy_timeout": _sqlite_busy,
    "user": IGNORED,
    "password": IGNORED,
    "date_class": _refused("Dates and times are read as texts or numbers, as they are stored."),
    "date_precision": _refused("Dates and times are read as texts or numbers, as they are stored."),
    "date_string_format": _refused("Dates and times are read as texts or numbers, as they are stored."),
    **dict.fromkeys(
        (
            "cache_size", "case_sensitive_like", "foreign_keys", "journal_mode", "jdbc.explicit_readonly",
            "locking_mode", "mmap_size", "open_mode", "page_size", "read_uncommitted", "shared_cache", "synchronous",
            "temp_store", "transaction_mode",
        ),
        IGNORED,
    ),
}  # fmt: skip


def _mssql_encrypt(result: Translated, name: str, value: str) -> None:
    words = {"true": "require", "mandatory": "require", "strict": "require", "false": "off", "optional": "off"}
    if value.strip().lower() not in words:
        raise ValueError("one of true, false, mandatory, optional, strict")
    result.arguments["encryption"] = words[value.strip().lower()]


_SQLSERVER: dict[str, _Translate] = {
    "user": _user,
    "userName": _user,
    "password": _password,
    "databaseName": _database,
    "database": _database,
    "encrypt": _mssql_encrypt,
    "loginTimeout": _whole("login_timeout"),
    "socketTimeout": _whole("timeout", per=1000),
    "applicationName": _as("appname"),
    "integratedSecurity": _refused("Use connection.user and connection.password."),
    "authentication": _refused("Use connection.user and connection.password."),
    **dict.fromkeys(
        (
            "trustServerCertificate", "hostNameInCertificate", "sendStringParametersAsUnicode", "selectMethod",
            "responseBuffering", "packetSize", "lockTimeout", "multiSubnetFailover", "sendTimeAsDatetime",
            "workstationID", "applicationIntent", "columnEncryptionSetting", "statementPoolingCacheSize",
            "disableStatementPooling", "useBulkCopyForBatchInsert", "connectRetryCount", "connectRetryInterval",
        ),
        IGNORED,
    ),
}  # fmt: skip

_ORACLE: dict[str, _Translate] = {
    "user": _user,
    "password": _password,
    "oracle.net.CONNECT_TIMEOUT": _whole("tcp_connect_timeout", per=1000),
    "oracle.net.ssl_server_dn_match": _one_of("ssl_server_dn_match", {"true": True, "false": False}),
    "TNS_ADMIN": _as("config_dir"),
    "oracle.net.tns_admin": _as("config_dir"),
    **dict.fromkeys(
        ("oracle.jdbc.timezoneAsRegion", "defaultRowPrefetch", "oracle.jdbc.ReadTimeout", "includeSynonyms",
         "remarksReporting", "v$session.program", "useFetchSizeWithLongColumn",
         "oracle.jdbc.implicitStatementCacheSize"),
        IGNORED,
    ),
}  # fmt: skip

TABLES: Mapping[str, Mapping[str, _Translate]] = {
    "postgresql": _POSTGRESQL,
    "mysql": _MYSQL,
    "sqlite": _SQLITE,
    "mssql": _SQLSERVER,
    "oracle": _ORACLE,
}
"""The parameters of each database, by SQLAlchemy's name of the database."""

_CASE_INSENSITIVE = ("mssql",)
