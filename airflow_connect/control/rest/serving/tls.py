"""TLS of https listeners: `listeners.https.ssl.*`, or the `ssl.*` of the worker, with Kafka Connect's names.

As in Kafka Connect (AbstractConfig.valuesWithPrefixAllOrNothing), keys without the prefix count only if there is none
with it. Key stores are PEM files, PEM texts or PKCS12 files. Python cannot read Java's own format, JKS.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError, missing_package

KEYSTORE, TRUSTSTORE = "ssl.keystore.location", "ssl.truststore.location"
KEYSTORE_TYPE, TRUSTSTORE_TYPE = "ssl.keystore.type", "ssl.truststore.type"
KEY_PASSWORD, CLIENT_AUTH, PROTOCOLS = "ssl.key.password", "ssl.client.auth", "ssl.enabled.protocols"
CHAIN, KEY, TRUSTED = "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.certificates"
_CLIENTS = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """What an https listener needs.

    Attributes:
        prefix: of the keys, for messages: `listeners.https.` or "".
        keys: the `ssl.*` keys; some are secrets.
    """

    prefix: str = ""
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, text: Mapping[str, str], prefix: str) -> TlsSettings:
        """From a worker configuration; `prefix`: `listeners.https.` or `admin.listeners.https.`."""
        own = {name.removeprefix(prefix): value for name, value in text.items() if name.startswith(f"{prefix}ssl.")}
        if own:
            return cls(prefix, own)
        return cls("", {name: value for name, value in text.items() if name.startswith("ssl.")})

    def context(self) -> ssl.SSLContext:
        """For a server.

        Raises:
            ConfigError: a key store cannot be used; names its key.
            MissingPackageError: `cryptography` is needed for PKCS12, and is not installed.
        """
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.minimum_version, found.maximum_version = self._versions()
        self._show_certificate(found)
        found.verify_mode = self._clients()
        if found.verify_mode is not ssl.CERT_NONE:
            self._trust(found)
        return found

    def _versions(self) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
        named = [name.strip() for name in self.keys.get(PROTOCOLS, "").split(",") if name.strip()]
        unknown = [name for name in named if name not in _VERSIONS]
        if unknown:
            raise self._error(PROTOCOLS, f"names {unknown[0]}", f"Known: {', '.join(_VERSIONS)}.")
        versions = [_VERSIONS[name] for name in named] or list(_VERSIONS.values())
        return min(versions), max(versions)

    def _clients(self) -> ssl.VerifyMode:
        given = self.keys.get(CLIENT_AUTH, "none").lower()
        if given not in _CLIENTS:
            raise self._error(CLIENT_AUTH, f"is {given!r}", f"It can be {', '.join(_CLIENTS)}.")
        return _CLIENTS[given]

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        location, kind = self.keys.get(KEYSTORE, ""), self.keys.get(KEYSTORE_TYPE, "JKS").upper()
        text = "\n".join(self.keys.get(name, "") for name in (CHAIN, KEY)).strip()
        password = self.keys.get(KEY_PASSWORD, "")
        if not location and not text:
            raise self._error(
                KEYSTORE, "is missing, but a listener is https",
                "Name a file with the certificate and its key, and its type: PEM or PKCS12.",
            )  # fmt: skip
        try:
            if kind == "PKCS12":
                _load(context, *self._from_pkcs12(location))
            elif kind != "PEM":
                raise self._error(
                    KEYSTORE_TYPE, f"is {kind}, which cannot be read here",
                    f"Convert {location}: keytool -importkeystore -srckeystore {location} -destkeystore keystore.p12"
                    " -deststoretype PKCS12, and set the type to PKCS12.",
                )  # fmt: skip
            elif text:
                _load(context, text.encode(), password)
            else:
                # An empty password instead of a prompt: there may be no terminal.
                context.load_cert_chain(location, password=lambda: password)
        except (OSError, ValueError) as error:
            raise self._error(
                KEYSTORE if location else CHAIN, f"cannot be used: {_reason(error)}",
                "It has to hold the certificate and its key; the password of the key is"
                f" {self.prefix}{KEY_PASSWORD}, that of a PKCS12 file {self.prefix}ssl.keystore.password.",
            ) from error  # fmt: skip

    def _from_pkcs12(self, location: str) -> tuple[bytes, str]:
        """Certificates and key of a PKCS12 file as PEM, the key encrypted with a new password."""
        try:
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.serialization import pkcs12
        except ModuleNotFoundError as error:
            raise missing_package(
                error.name or "cryptography", "worker", purpose="A PKCS12 key store", where=""
            ) from error
        password = self.keys.get("ssl.keystore.password", "").encode() or None
        key, certificate, others = pkcs12.load_key_and_certificates(Path(location).read_bytes(), password)
        if key is None or certificate is None:
            raise ValueError("it has no key, or no certificate")
        once, pem = secrets.token_urlsafe(), serialization.Encoding.PEM
        encrypted = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(once.encode())
        )
        return encrypted + b"".join(each.public_bytes(pem) for each in (certificate, *others)), once

    def _trust(self, context: ssl.SSLContext) -> None:
        location, kind = self.keys.get(TRUSTSTORE, ""), self.keys.get(TRUSTSTORE_TYPE, "JKS").upper()
        text = self.keys.get(TRUSTED, "")
        if not location and not text:
            raise self._error(
                TRUSTSTORE, f"is missing, but {self.prefix}{CLIENT_AUTH} is set",
                "Name a PEM file with the certificates of the authorities that sign those of clients.",
            )  # fmt: skip
        if kind != "PEM":
            raise self._error(
                TRUSTSTORE_TYPE, f"is {kind}, which cannot be read here",
                f"Convert {location}: keytool -exportcert -rfc -alias NAME -keystore {location} > authorities.pem, and"
                " set the type to PEM.",
            )  # fmt: skip
        try:
            context.load_verify_locations(location or None, cadata=text or None)
        except (OSError, ValueError) as error:
            raise self._error(
                TRUSTSTORE if location else TRUSTED, f"cannot be used: {_reason(error)}",
                "It has to hold certificates of authorities in PEM.",
            ) from error  # fmt: skip

    def _error(self, key: str, what: str, suggestion: str) -> ConfigError:
        return ConfigError(
            f"The setting {self.prefix}{key} {what}.",
            code="worker.certificate",
            config_path=f"{self.prefix}{key}",
            suggestion=f"{suggestion} All keys of https: {page_url('rest')}",
        )


def _load(context: ssl.SSLContext, pem: bytes, password: str) -> None:
    """Load PEM from memory: Python's ssl reads files only. The folder is of this user alone, and is removed at once."""
    with tempfile.TemporaryDirectory(prefix="airflow-connect-tls-") as folder:
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)
        context.load_cert_chain(path, password=lambda: password)


def _reason(error: Exception) -> str:
    """Of ssl's errors the reason: their text has no secret, but places in OpenSSL's source."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no PEM").replace("_", " ").lower()
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
