"""Executors on other machines: what they get of the driver's environment, and what only the driver's machine has.

A login that stands in the driver's environment, such as AWS_SECRET_ACCESS_KEY, works for the plan and is unknown to
tasks on another machine. So a task gets the variables of `GROUPS` that the driver has, unless its own machine has a
login of that group. They travel with the settings of the run, inside the pickled function, and are written nowhere;
Spark's own S3A does the same (SparkHadoopUtil.appendS3CredentialsFromEnvironment). Variables and files that depend on
the machine are not sent. If a task fails, its error names those that only the driver has.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as UnreadableError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_connect.errors import (
    AuditError,
    ConnectError,
    DataError,
    FencedError,
    InternalError,
    OffsetError,
    StateError,
)

MOST_NAMED = 12
MOST_PATHS = 200
"""Paths that tasks get to compare: a connector may name thousands of files."""
_SAME_EVERYWHERE = (AuditError, DataError, FencedError, InternalError, OffsetError, StateError)
"""Errors that a task on the driver's machine would have, too."""
_PATH = re.compile(r"(?:^|[=:\"'])(?:file:(?://)?)?(/[^\"'&;,?\s]+)")
"""A path as a whole value, or in one: `jdbc:...?sslrootcert=/etc/ca.pem`, `keyTab="/etc/a.keytab"`."""


@dataclass(frozen=True, slots=True)
class LoginGroup:
    """Variables that are one login together: an executor gets all of them, or keeps its own.

    Attributes:
        logins: sent to executors. An executor that has one of them has a login of its own.
        own: variables that also are a login of a machine, but of no other one.
        files: sent like `logins` if the executor has the file that the value names; a part of no login by itself.
        settings: sent together with `logins`.
        areas: beginnings of the codes of errors that may be about such a login.
        default_files: where programs look for a login without any variable. They are never sent.
    """

    logins: tuple[str, ...]
    own: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    default_files: tuple[str, ...] = ()

    @property
    def sent(self) -> tuple[str, ...]:
        """Every variable that may be sent."""
        return (*self.logins, *self.files, *self.settings)


AWS = LoginGroup(
    logins=(
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SECURITY_TOKEN",
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
    ),
    own=(
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ),
    files=("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"),
    areas=("s3", "iceberg", "file"),
    default_files=("~/.aws/credentials", "~/.aws/config"),
)
AWS_REGION = LoginGroup(logins=("AWS_REGION", "AWS_DEFAULT_REGION"))
CERTIFICATES = LoginGroup(
    logins=(),
    files=("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    areas=("s3", "iceberg", "registry", "search", "server", "kafka"),
)
POSTGRESQL = LoginGroup(
    logins=("PGUSER", "PGPASSWORD", "PGSERVICE"),
    files=("PGPASSFILE", "PGSERVICEFILE", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT"),
    settings=("PGSSLMODE", "PGREQUIREAUTH", "PGCHANNELBINDING"),
    areas=("database", "jdbc"),
    default_files=("~/.pgpass", "~/.pg_service.conf", "~/.postgresql/root.crt", "~/.postgresql/postgresql.crt"),
)
HADOOP = LoginGroup(
    logins=("HADOOP_USER_NAME", "HADOOP_PROXY_USER"),
    files=("KRB5CCNAME", "KRB5_CLIENT_KTNAME", "KRB5_CONFIG"),
    areas=("hdfs", "hive", "kafka"),
    default_files=("/etc/krb5.conf",),
)
GROUPS = (AWS, AWS_REGION, CERTIFICATES, POSTGRESQL, HADOOP)
"""What this package and its clients read. Source: botocore's configprovider, libpq's PQconndefaults, hdfs-native."""

_OF_A_MACHINE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("HADOOP_CONF_DIR", HADOOP.areas),
    ("HADOOP_HOME", HADOOP.areas),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AWS.areas),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AWS.areas),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AWS.areas),
    ("AWS_ENDPOINT_URL", AWS.areas),
    ("AWS_ENDPOINT_URL_STS", AWS.areas),
    ("TNS_ADMIN", POSTGRESQL.areas),
    *((name, ()) for scheme in ("http", "https", "all") for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")),
)
"""Variables that are never sent, because they describe a machine or its network, and the areas of their errors."""


@dataclass(frozen=True, slots=True)
class DriverMachine:
    """What tasks need to know about the machine of the driver. Holds secrets: it is sent as `TaskSettings` are.

    Attributes:
        host: its name.
        sent: variables of `GROUPS` that it has.
        kept: names of variables that it has and that are not sent.
        paths: files and directories that the configuration or a login names, and that it has.
    """

    host: str
    sent: Mapping[str, str] = field(default_factory=dict, repr=False)
    kept: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """What a task took of the driver's variables, by their names.

    Attributes:
        names: those that it has during the task.
        own: those that it has a value of its own of, or whose group it has a login of its own of.
        unusable: those that name a file or a profile that is not on its machine.
    """

    names: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()


def sent_names(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Names of the variables that executors on other machines get."""
    return tuple(name for group in GROUPS for name in group.sent if environment.get(name))


def has_other_machines(spark: Mapping[str, str]) -> bool:
    """Whether tasks may run on another machine than the driver, or with another environment.

    Args:
        spark: `spark.*` of the worker.
    """
    return bool(spark.get("spark.remote")) or not spark.get("spark.master", "local[*]").startswith("local")


def sentence_about(spark: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> str:
    """What a plan says about it; "" if there is nothing to say. Names of variables, never their values."""
    names = sent_names(environment) if has_other_machines(spark) else ()
    if not names:
        return ""
    return f"Executors without a login of their own get {', '.join(names)} of the driver's environment."


def driver_machine(*configurations: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> DriverMachine:
    """This machine, as the driver's.

    Args:
        configurations: of connector and worker, resolved; paths in their values are looked for.
        environment: of the driver.
    """
    found = [path for values in configurations for value in values.values() for path in _PATH.findall(str(value))]
    defaults = [name for group in GROUPS for name in group.default_files]
    return DriverMachine(
        host=socket.gethostname(),
        sent={name: environment[name] for name in sent_names(environment)},
        kept=tuple(name for name, _ in _OF_A_MACHINE if environment.get(name)),
        paths=tuple(path for path in list(dict.fromkeys([*defaults, *found]))[:MOST_PATHS] if _exists(path)),
    )


@contextmanager
def taking_along(machine: DriverMachine) -> Iterator[Taken]:
    """Give this process, on an executor, the driver's logins for one task. Its next task may be one of another run."""
    taken, own, unusable = _sorted_out(machine.sent, os.environ)
    os.environ.update(taken)
    try:
        yield Taken(tuple(taken), own, unusable)
    finally:
        for name in taken:
            os.environ.pop(name, None)


def _sorted_out(
    sent: Mapping[str, str], here: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """The variables to take, the names of those that this machine has its own of, and of those it cannot use."""
    taken: dict[str, str] = {}
    own: list[str] = []
    unusable: list[str] = []
    for group in GROUPS:
        offered = [name for name in group.sent if name in sent and here.get(name) != sent[name]]
        if any(here.get(name) for name in (*group.logins, *group.own)):
            own += offered
            continue
        for name in offered:
            if here.get(name):
                own.append(name)
            elif _is_usable(name, sent, group):
                taken[name] = sent[name]
            else:
                unusable.append(name)
    return taken, tuple(own), tuple(unusable)


def _is_usable(name: str, sent: Mapping[str, str], group: LoginGroup) -> bool:
    """Whether this machine has the file, or the profile, that a variable names."""
    if name in group.files:
        return _exists(sent[name].removeprefix("FILE:"))
    return "PROFILE" not in name or _has_profile(sent[name], sent)


def _has_profile(profile: str, sent: Mapping[str, str]) -> bool:
    """Whether the AWS configuration of this machine has a profile.

    Source: AWS, "Configuration and credential file settings".
    """
    variables = zip(AWS.files, AWS.default_files, strict=True)
    for path in (sent.get(name) or os.environ.get(name) or default for name, default in variables):
        parser = ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(Path(path).expanduser())
        except (UnreadableError, OSError, UnicodeDecodeError):
            return True  # botocore says better what is wrong with it
        if {profile, f"profile {profile}"} & set(parser.sections()):
            return True
    return False


def _exists(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # no permission to look, or no home directory
        return False


def name_machines(error: ConnectError, machine: DriverMachine, taken: Taken) -> None:
    """Let an error that a task met say on which machine, and what only the driver's machine has.

    Nothing is added if both are the same machine and nothing is missing, or if the error is about a record.
    """
    if isinstance(error, _SAME_EVERYWHERE):
        return
    here, area = socket.gethostname(), error.code.partition(".")[0]
    groups = [group for group in GROUPS if area in group.areas] or list(GROUPS)
    names = {name for group in groups for name in group.sent}
    of_area = [name for name, areas in _OF_A_MACHINE if not areas or area in areas or len(groups) == len(GROUPS)]
    defaults = {name for group in GROUPS for name in group.default_files}
    meant = {name for group in groups for name in group.default_files}
    missing = [
        *(name for name in taken.unusable if name in names),
        *(name for name in machine.kept if name in of_area and not os.environ.get(name)),
        *(path for path in machine.paths if (path in meant or path not in defaults) and not _exists(path)),
    ]
    kept = [name for name in taken.own if name in names]
    if here == machine.host and not missing and not kept:
        return
    sentences = [f"It happened on an executor on {here}; the driver runs on {machine.host}."]
    if missing:
        sentences.append(f"Only the driver has, or can use: {_listed(missing)}.")
    if kept:
        sentences.append(f"The executor has a login of its own, so it did not get the driver's {_listed(kept)}.")
    error.suggestion = " ".join(filter(None, [error.suggestion, *sentences]))


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
