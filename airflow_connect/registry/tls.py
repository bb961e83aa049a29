"""TLS of HTTP clients from Java's key names; stores must be PEM (KIP-651)."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_connect.errors import ConfigError
from airflow_connect.registry.settings import SSL


def tls_context(parsed: Mapping[str, Any], prefix: str = SSL) -> ssl.SSLContext:
    """Trust, client certificate and host name check as configured; without these keys, the system's trust.

    Args:
        parsed: the configuration, with the keys of `settings.tls_keys`.
        prefix: what these keys begin with.

    Raises:
        ConfigError: a store that is not PEM, or a file that cannot be read. No secret is in it.
    """
    location, text = parsed[f"{prefix}truststore.location"], parsed[f"{prefix}truststore.certificates"].value
    _check_pem(parsed, prefix, "truststore", location)
    try:
        context = ssl.create_default_context(cafile=location or None, cadata=text or None)
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(prefix, "truststore", location, error) from None
    if not parsed[f"{prefix}endpoint.identification.algorithm"]:
        context.check_hostname = False
    _load_client_certificate(context, parsed, prefix)
    return context


def _load_client_certificate(context: ssl.SSLContext, parsed: Mapping[str, Any], prefix: str) -> None:
    location = parsed[f"{prefix}keystore.location"]
    key, chain = parsed[f"{prefix}keystore.key"].value, parsed[f"{prefix}keystore.certificate.chain"].value
    password = parsed[f"{prefix}key.password"].value
    _check_pem(parsed, prefix, "keystore", location)
    try:
        if location:
            context.load_cert_chain(location, password=password)
        elif key and chain:
            # Python's ssl accepts files only; this one is readable by this user only, and is removed immediately.
            handle, name = tempfile.mkstemp()
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(f"{key}\n{chain}\n")
                context.load_cert_chain(name, password=password)
            finally:
                Path(name).unlink()
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(prefix, "keystore", location, error) from None


def _check_pem(parsed: Mapping[str, Any], prefix: str, store: str, location: str) -> None:
    kind = parsed[f"{prefix}{store}.type"].upper()
    if not location or (kind == "PEM" and not location.lower().endswith((".jks", ".p12", ".pfx"))):
        return
    raise ConfigError(
        f"{prefix}{store}.location={location} is not a PEM file; Java's stores and PKCS12 cannot be read here.",
        suggestion=(
            "Export it: keytool -exportcert -rfc, or openssl pkcs12 -in <store> -out store.pem; then set "
            f"{prefix}{store}.type=PEM and {prefix}{store}.location=store.pem."
        ),
        config_path=f"{prefix}{store}.location",
    )


def _unreadable(prefix: str, store: str, location: str, error: Exception) -> ConfigError:
    where = f"{prefix}{store}.location={location}" if location else f"The PEM text of {prefix}{store}.*"
    return ConfigError(
        f"{where} cannot be used: {getattr(error, 'strerror', None) or error}.",
        suggestion=f"Use a readable PEM file, and set {prefix}key.password to the password of its key.",
        config_path=f"{prefix}{store}.location",
    )
