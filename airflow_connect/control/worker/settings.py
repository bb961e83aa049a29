"""Where a worker listens, and who may send requests: `listeners` and its relatives, with Kafka Connect's names."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_connect.config.definition.values import coerce_config
from airflow_connect.errors import ConfigError
from airflow_connect.java.properties_file import parse_properties
from airflow_connect.runtime.listening import in_url, is_loopback

LISTENERS = "listeners"
DEFAULT_LISTENER = "http://127.0.0.1:8083"
EXTENSIONS = "rest.extension.classes"
USERS_FILE = "rest.basic.auth.file"
BASIC_AUTH = "BasicAuthSecurityRestExtension"
ADVERTISED_HOST, ADVERTISED_PORT = "rest.advertised.host.name", "rest.advertised.port"
_HTTPS = "listeners.https."
KEYSTORE, KEYSTORE_TYPE, KEY_PASSWORD = "ssl.keystore.location", "ssl.keystore.type", "ssl.key.password"
_LISTENER = re.compile(r"(https?)://(\[[0-9a-fA-F:]+\]|[^:/\s]*):(\d{1,5})/?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where a worker listens.

    Attributes:
        scheme: `http` or `https`.
        host: "": every interface.
        port: 0: a free one.
        users: password by name; {}: no authentication.
        certificate: PEM file with the certificate and its key; "": none.
        key_password: of that key.
        advertised_host, advertised_port: how other machines reach it; "" and 0: by `host` and `port`.
    """

    scheme: str = "http"
    host: str = "127.0.0.1"
    port: int = 8083
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: str = ""
    key_password: str = field(default="", repr=False)
    advertised_host: str = ""
    advertised_port: int = 0

    @classmethod
    def from_worker(cls, resolved: Mapping[str, Any]) -> ServerSettings:
        """From a worker configuration, references resolved.

        Raises:
            ConfigError: names the key.
        """
        text = {name: value.strip() for name, value in coerce_config(resolved).items() if value is not None}
        scheme, host, port = _listener(text.get(LISTENERS) or DEFAULT_LISTENER)
        users = _users(text)
        if not users and not is_loopback(host):
            raise ConfigError(
                f"The worker would listen on {host or 'every interface'} without authentication: whoever can reach it"
                " could read and change connectors.",
                code="worker.open",
                config_path=LISTENERS,
                suggestion=f"Set {EXTENSIONS}=org.apache.kafka.connect.rest.basic.auth.extension.{BASIC_AUTH} and"
                f" {USERS_FILE}, or listen on loopback: {LISTENERS}={DEFAULT_LISTENER}.",
            )
        return cls(
            scheme=scheme,
            host=host,
            port=port,
            users=users,
            certificate=_certificate(text) if scheme == "https" else "",
            key_password=_https(text, KEY_PASSWORD),
            advertised_host=text.get(ADVERTISED_HOST, ""),
            advertised_port=_port(ADVERTISED_PORT, text.get(ADVERTISED_PORT) or "0"),
        )

    def tls(self) -> dict[str, str]:
        """Arguments of uvicorn; {} for plain HTTP.

        Raises:
            ConfigError: the certificate cannot be used.
        """
        if not self.certificate:
            return {}
        try:
            # An empty password instead of a prompt: there may be no terminal.
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                self.certificate, password=lambda: self.key_password
            )
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"The certificate in {self.certificate} cannot be used: {error}.",
                code="worker.certificate",
                config_path=f"{_HTTPS}{KEYSTORE}",
                suggestion="Give a PEM file that holds the certificate and its key, and the password of the key in"
                f" {_HTTPS}{KEY_PASSWORD} if it has one.",
            ) from error
        return {"ssl_certfile": self.certificate, "ssl_keyfile_password": self.key_password}

    def worker_id(self, port: int) -> str:
        """host:port, as states name the worker; `port`: on which it listens."""
        host = self.advertised_host or self.host or "localhost"
        return f"{in_url(host.strip('[]'))}:{self.advertised_port or port}"

    def url(self, port: int) -> str:
        """Where it can be reached from this machine."""
        return f"{self.scheme}://{in_url((self.host or 'localhost').strip('[]'))}:{port}"


def _listener(value: str) -> tuple[str, str, int]:
    found = _LISTENER.fullmatch(value)
    if found is None:
        several = "," in value
        raise ConfigError(
            f"{LISTENERS}={value} " + ("names several listeners." if several else "is no listener."),
            code="worker.listeners",
            config_path=LISTENERS,
            suggestion=f"Name one: {DEFAULT_LISTENER}, or https://HOST:PORT.",
        )
    scheme, host, port = found.groups()
    return scheme.lower(), host.strip("[]"), _port(LISTENERS, port)


def _port(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:6]) <= 65535):
        raise ConfigError(f"{key} has the port {text!r}; a port is a number from 0 to 65535.", config_path=key)
    return int(text)


def _https(text: Mapping[str, str], key: str) -> str:
    """A key of the listener; without its prefix it is of all clients and of the listener, as in Kafka Connect."""
    return text.get(f"{_HTTPS}{key}") or text.get(key, "")


def _certificate(text: Mapping[str, str]) -> str:
    location, kind = _https(text, KEYSTORE), _https(text, KEYSTORE_TYPE)
    if not location or kind.upper() != "PEM":
        raise ConfigError(
            f"{LISTENERS} is https, but "
            + (f"the key store {location} is no PEM file." if location else "there is no key store."),
            code="worker.certificate",
            config_path=f"{_HTTPS}{KEYSTORE}",
            suggestion=f"Set {_HTTPS}{KEYSTORE_TYPE}=PEM, and {_HTTPS}{KEYSTORE} to a file with the certificate and its"
            " key. From PKCS12: openssl pkcs12 -in keystore.p12 -out server.pem",
        )
    return location


def _users(text: Mapping[str, str]) -> dict[str, str]:
    classes = [name.strip() for name in text.get(EXTENSIONS, "").split(",") if name.strip()]
    unknown = [name for name in classes if name.rpartition(".")[2] != BASIC_AUTH]
    if unknown:
        raise ConfigError(
            f"{EXTENSIONS} names {unknown[0]}, which is not known here.",
            config_path=EXTENSIONS,
            suggestion=f"Only {BASIC_AUTH} is supported.",
        )
    path = text.get(USERS_FILE, "")
    if bool(classes) != bool(path):
        missing, given = (USERS_FILE, EXTENSIONS) if classes else (EXTENSIONS, USERS_FILE)
        raise ConfigError(
            f"{given} is set, but {missing} is not, so no request would be authenticated.",
            code="worker.users",
            config_path=missing,
            suggestion=f"Set {EXTENSIONS} to {BASIC_AUTH}, and {USERS_FILE} to a file with lines `user=password`.",
        )
    return _read_users(path) if path else {}


def _read_users(path: str) -> dict[str, str]:
    try:
        mode, users = Path(path).stat().st_mode, parse_properties(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The users cannot be read from {path}: {error.__class__.__name__}.",
            code="worker.users",
            config_path=USERS_FILE,
            suggestion="Name a properties file with a line `user=password` for each user.",
        ) from error
    if not users or not all(users.values()) or mode & 0o007:
        why = "can be read or written by every user of this machine" if users and all(users.values()) else (
            "has no user, or a user without a password"
        )  # fmt: skip
        raise ConfigError(
            f"The file {path} {why}.",
            code="worker.users",
            config_path=USERS_FILE,
            suggestion=f"Write a line `user=password` for each user, and run: chmod 640 {path}",
        )
    return dict(users)
