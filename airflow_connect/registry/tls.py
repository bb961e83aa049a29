"""TLS for the registry from Java's key names; stores must be PEM (KIP-651)."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_connect.errors import ConfigError
from airflow_connect.registry.settings import SSL


def tls_context(parsed: Mapping[str, Any]) -> ssl.SSLContext:
    """Trust, client certificate and host name check as configured; without these keys, the system's trust.

    Raises:
        ConfigError: a store that is not PEM, or a file that cannot be read. No secret is in it.
    """
    location, text = parsed[f"{SSL}truststore.location"], parsed[f"{SSL}truststore.certificates"].value
    _check_pem(parsed, "truststore", location)
    try:
        context = ssl.create_default_context(cafile=location or None, cadata=text or None)
    except (OSError, ssl.SSLError) as error:
        raise _unreadable("truststore", location, error) from None
    if not parsed[f"{SSL}endpoint.identification.algorithm"]:
        context.check_hostname = False
    _load_client_certificate(context, parsed)
    return context


def _load_client_certificate(context: ssl.SSLContext, parsed: Mapping[str, Any]) -> None:
    location = parsed[f"{SSL}keystore.location"]
    key, chain = parsed[f"{SSL}keystore.key"].value, parsed[f"{SSL}keystore.certificate.chain"].value
    password = parsed[f"{SSL}key.password"].value
    _check_pem(parsed, "keystore", location)
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
        raise _unreadable("keystore", location, error) from None


def _check_pem(parsed: Mapping[str, Any], store: str, location: str) -> None:
    kind = parsed[f"{SSL}{store}.type"].upper()
    if not location or (kind == "PEM" and not location.lower().endswith((".jks", ".p12", ".pfx"))):
        return
    raise ConfigError(
        f"{SSL}{store}.location={location} is not a PEM file; Java's stores and PKCS12 cannot be read here.",
        suggestion=(
            "Export it: keytool -exportcert -rfc, or openssl pkcs12 -in <store> -out store.pem; then set "
            f"{SSL}{store}.type=PEM and {SSL}{store}.location=store.pem."
        ),
        config_path=f"{SSL}{store}.location",
    )


def _unreadable(store: str, location: str, error: Exception) -> ConfigError:
    where = f"{SSL}{store}.location={location}" if location else f"The PEM text of {SSL}{store}.*"
    return ConfigError(
        f"{where} cannot be used: {getattr(error, 'strerror', None) or error}.",
        suggestion="Use a readable PEM file, and set schema.registry.ssl.key.password to the password of its key.",
        config_path=f"{SSL}{store}.location",
    )
