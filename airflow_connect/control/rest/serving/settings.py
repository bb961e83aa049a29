"""What a worker configuration says about its servers, with Kafka Connect's names."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config.values import coerce_config
from airflow_connect.control.rest.serving import response_headers
from airflow_connect.control.rest.serving.listeners import (
    ADMIN_LISTENERS,
    DEFAULT_LISTENER,
    HTTPS,
    LISTENERS,
    Listener,
    listeners_of,
    port_of,
)
from airflow_connect.control.rest.serving.origins import Origins
from airflow_connect.control.rest.serving.response_headers import HeaderRule
from airflow_connect.control.rest.serving.tls import TlsSettings
from airflow_connect.control.rest.serving.users import BASIC_AUTH, EXTENSIONS, USERS_FILE, users_of
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.listening import in_url, is_loopback

ADVERTISED_HOST, ADVERTISED_PORT = "rest.advertised.host.name", "rest.advertised.port"
ADVERTISED_LISTENER = "rest.advertised.listener"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The servers of a worker.

    Attributes:
        listeners: where it listens.
        admin_listeners: where log levels are shown and set; None: at all listeners; (): nowhere.
        users: password by name; {}: no authentication.
        tls, admin_tls: certificates of https listeners.
        origins: web pages of other hosts that are let in.
        headers: of every answer.
        advertised_host, advertised_port, advertised_scheme: how other machines reach it; "", 0 and "": as it listens.
    """

    listeners: tuple[Listener, ...] = (Listener(),)
    admin_listeners: tuple[Listener, ...] | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: TlsSettings = field(default_factory=TlsSettings)
    admin_tls: TlsSettings = field(default_factory=TlsSettings)
    origins: Origins = field(default_factory=Origins)
    headers: tuple[HeaderRule, ...] = ()
    advertised_host: str = ""
    advertised_port: int = 0
    advertised_scheme: str = ""

    @classmethod
    def from_worker(cls, resolved: Mapping[str, Any]) -> ServerSettings:
        """From a worker configuration, references resolved.

        Raises:
            ConfigError: names the key.
        """
        text = {name: value.strip() for name, value in coerce_config(resolved).items() if value is not None}
        admin = text.get(ADMIN_LISTENERS)
        found = cls(
            listeners=listeners_of(LISTENERS, text.get(LISTENERS) or DEFAULT_LISTENER),
            admin_listeners=None if admin is None else listeners_of(ADMIN_LISTENERS, admin),
            users=users_of(text),
            tls=TlsSettings.of(text, "listeners.https."),
            admin_tls=TlsSettings.of(text, "admin.listeners.https."),
            origins=Origins.from_worker(text),
            headers=response_headers.rules_of(text.get(response_headers.KEY, "")),
            advertised_host=text.get(ADVERTISED_HOST, ""),
            advertised_port=port_of(ADVERTISED_PORT, text.get(ADVERTISED_PORT) or "0"),
            advertised_scheme=text.get(ADVERTISED_LISTENER, "").lower(),
        )
        found._refuse_open()
        found._refuse_unknown_advertised()
        return found

    def context_of(self, listener: Listener) -> ssl.SSLContext | None:
        """The certificate of a listener; None for plain HTTP.

        Raises:
            ConfigError, MissingPackageError: it cannot be used.
        """
        if listener.scheme != HTTPS:
            return None
        return (self.admin_tls if listener.key == ADMIN_LISTENERS else self.tls).context()

    def check(self) -> None:
        """Load every certificate.

        Raises:
            ConfigError, MissingPackageError: one cannot be used.
        """
        for listener in (*self.listeners, *(self.admin_listeners or ())):
            self.context_of(listener)

    def advertised(self) -> Listener:
        """The listener that states name. Source: RestServer.determineAdvertisedProtocol: http, if there is one."""
        wanted = (self.advertised_scheme,) if self.advertised_scheme else ("http", HTTPS)
        return next(each for scheme in wanted for each in self.listeners if each.scheme == scheme)

    def worker_id(self, port: int) -> str:
        """host:port, as states name the worker; `port`: on which the advertised listener listens."""
        host = self.advertised_host or self.advertised().host or "localhost"
        return f"{in_url(host.strip('[]'))}:{self.advertised_port or port}"

    def _refuse_open(self) -> None:
        for listener in (*self.listeners, *(self.admin_listeners or ())):
            if not self.users and not is_loopback(listener.host):
                raise ConfigError(
                    f"The worker would listen on {listener.host or 'every interface'} without authentication: whoever"
                    " can reach it could read and change connectors.",
                    code="worker.open",
                    config_path=listener.key,
                    suggestion=f"Set {EXTENSIONS}=org.apache.kafka.connect.rest.basic.auth.extension.{BASIC_AUTH} and"
                    f" {USERS_FILE}, or listen on loopback: {LISTENERS}={DEFAULT_LISTENER}.",
                )

    def _refuse_unknown_advertised(self) -> None:
        schemes = {listener.scheme for listener in self.listeners}
        if self.advertised_scheme and self.advertised_scheme not in schemes:
            raise ConfigError(
                f"{ADVERTISED_LISTENER} is {self.advertised_scheme!r}, but {LISTENERS} has no such listener.",
                config_path=ADVERTISED_LISTENER,
                suggestion=f"It can be {' or '.join(sorted(schemes))}.",
            )
