"""Addresses and timeouts of the Hive metastore, from the connector's keys and from hive-site.xml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from airflow_connect.errors import ConfigError

URIS, CONF_DIR = "hive.metastore.uris", "hive.conf.dir"
SITE = "hive-site.xml"
DEFAULT_PORT = 9083
DEFAULT_TIMEOUT_S = 600.0
"""Hive's own `hive.metastore.client.socket.timeout`: adding a column to 10,000 partitions takes minutes."""

_TIMEOUT_KEYS = ("hive.metastore.client.socket.timeout", "metastore.client.socket.timeout")
_URI_KEYS = (URIS, "metastore.thrift.uris")
_UNSUPPORTED = {
    "hive.metastore.sasl.enabled": ("true", "Kerberos (SASL)"),
    "metastore.sasl.enabled": ("true", "Kerberos (SASL)"),
    "hive.metastore.use.SSL": ("true", "TLS"),
    "metastore.use.SSL": ("true", "TLS"),
    "hive.metastore.client.thrift.transport.mode": ("http", "thrift over HTTP"),
    "metastore.client.thrift.transport.mode": ("http", "thrift over HTTP"),
}
_UNITS_S = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "msec": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of one metastore."""

    host: str
    port: int

    def __str__(self) -> str:
        """As a thrift address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class MetastoreSettings:
    """How to reach the metastore.

    Attributes:
        addresses: of one metastore service; the next one is tried if those before it do not answer.
        timeout_s: maximum seconds per request.
        connect_timeout_s: maximum seconds to connect.
        tries: rounds over all addresses; the pause between them doubles.
        pause_s: the first pause.
    """

    addresses: tuple[Address, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    connect_timeout_s: float = 10.0
    tries: int = 3
    pause_s: float = 1.0

    @classmethod
    def from_keys(cls, uris: str, conf_dir: str) -> MetastoreSettings:
        """From `hive.metastore.uris`, which takes precedence, and hive-site.xml in `hive.conf.dir`.

        Raises:
            ConfigError: there is no address or an invalid one, or the metastore's security is not supported.
        """
        site = read_site(Path(conf_dir) / SITE) if conf_dir else {}
        for key, (value, what) in _UNSUPPORTED.items():
            if site.get(key, "").strip().lower() == value:
                raise ConfigError(
                    f"{SITE} sets {key}={value}: {what} is not supported for the Hive metastore.",
                    code="hive.security",
                    suggestion="Open an unsecured thrift port for this host, or add tables with DDL and MSCK REPAIR "
                    "TABLE.",
                    config_path=CONF_DIR,
                )
        found = uris or next((site[key] for key in _URI_KEYS if site.get(key)), "")
        addresses = tuple(_address(uri.strip()) for uri in found.split(",") if uri.strip())
        if not addresses:
            raise ConfigError(
                f"hive.integration=true needs the address of a Hive metastore, and neither {URIS} nor {SITE} in"
                f" {CONF_DIR} names one.",
                code="hive.no_address",
                suggestion=f"Set {URIS}=thrift://HOST:{DEFAULT_PORT}. An embedded metastore is not supported.",
                config_path=URIS,
            )
        timeout = next((site[key] for key in _TIMEOUT_KEYS if site.get(key)), "")
        return cls(addresses, _seconds(timeout) if timeout else DEFAULT_TIMEOUT_S)


def read_site(path: Path) -> Mapping[str, str]:
    """The properties of a Hadoop configuration file.

    Raises:
        ConfigError: it cannot be read, or is not a configuration file.
    """
    try:
        text = path.read_text("utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ValueError("it declares a document type")
        root = ElementTree.fromstring(text)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}.",
            code="hive.site",
            suggestion=f"Set {CONF_DIR} to a folder with a {SITE} that this process may read.",
            config_path=CONF_DIR,
        ) from error
    properties = ((p.findtext("name", "").strip(), p.findtext("value", "").strip()) for p in root.iter("property"))
    return {name: value for name, value in properties if name}


def _address(uri: str) -> Address:
    try:
        parts = urlsplit(uri)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise _bad_address(uri) from None
    if parts.scheme != "thrift" or not parts.hostname or parts.path.strip("/") or parts.username:
        raise _bad_address(uri)
    return Address(parts.hostname, port)


def _bad_address(uri: str) -> ConfigError:
    return ConfigError(
        f"{URIS} contains {uri!r}, which is not a thrift address.",
        code="hive.address",
        suggestion=f"Write thrift://HOST:{DEFAULT_PORT}, several separated by commas.",
        config_path=URIS,
    )


def _seconds(text: str) -> float:
    """Parse a duration in Hive's form: a number with a unit, or of seconds."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = _UNITS_S.get(match[2]) if match else None
    if match is None or unit is None:
        raise ConfigError(
            f"{SITE} sets {_TIMEOUT_KEYS[0]}={text}, which is not a duration.",
            code="hive.site",
            suggestion="Write a number of seconds, or 600s.",
            config_path=CONF_DIR,
        )
    return int(match[1]) * unit
