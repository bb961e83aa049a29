"""TLS to the registry: trust and client certificates from PEM, as files and as text."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from airflow_connect.errors import UnavailableError
from airflow_connect.registry.client import AVRO, SchemaRegistryClient, SchemaText
from airflow_connect.registry.settings import shared_keys
from tests.unit.registry.registry_double import RegistryDouble

PASSWORD = b"of-the-key"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A certificate for 127.0.0.1 that is its own authority, its key, and its key under a password."""
    folder, key = tmp_path_factory.mktemp("pem"), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    open_key = key.private_bytes(encoding, form, serialization.NoEncryption())
    closed_key = key.private_bytes(encoding, form, serialization.BestAvailableEncryption(PASSWORD))
    texts = {"ca": certificate.public_bytes(encoding), "key": open_key}
    texts["store"] = closed_key + texts["ca"]
    for part, data in texts.items():
        (folder / f"{part}.pem").write_bytes(data)
    return {part: folder / f"{part}.pem" for part in texts}


@pytest.fixture
def registry(pem: dict[str, Path]) -> Iterator[RegistryDouble]:
    """A registry that asks for a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem["ca"], pem["key"])
    context.load_verify_locations(pem["ca"])
    context.verify_mode = ssl.CERT_REQUIRED
    with RegistryDouble((200, {"schema": '"int"'}), tls=context) as double:
        yield double


def _schema(url: str, **config: str) -> SchemaText:
    named = {f"schema.registry.ssl.{key.replace('_', '.')}": value for key, value in config.items()}
    given = {"schema.registry.url": url, "max.retries": "0", **named}
    return SchemaRegistryClient(shared_keys().parse(given), given).schema(1)


def test_tls_files_with_a_password_are_used(registry: RegistryDouble, pem: dict[str, Path]) -> None:
    found = _schema(
        registry.url,
        truststore_location=str(pem["ca"]),
        keystore_location=str(pem["store"]),
        key_password=PASSWORD.decode(),
    )
    assert found == SchemaText(AVRO, '"int"')


def test_tls_texts_are_used(registry: RegistryDouble, pem: dict[str, Path]) -> None:
    authority = pem["ca"].read_text()
    found = _schema(
        registry.url,
        truststore_certificates=authority,
        keystore_certificate_chain=authority,
        keystore_key=pem["key"].read_text(),
    )
    assert found == SchemaText(AVRO, '"int"')


def test_tls_unknown_authority_says_so(registry: RegistryDouble) -> None:
    with pytest.raises(UnavailableError, match="certificate verify failed"):
        _schema(registry.url)


def test_tls_other_host_name_is_refused_unless_not_compared(pem: dict[str, Path], registry: RegistryDouble) -> None:
    url = registry.url.replace("127.0.0.1", "localhost")
    stores = {
        "truststore_location": str(pem["ca"]),
        "keystore_location": str(pem["store"]),
        "key_password": PASSWORD.decode(),
    }
    with pytest.raises(UnavailableError, match=r"Hostname mismatch|doesn't match"):
        _schema(url, **stores)
    assert _schema(url, **stores, endpoint_identification_algorithm="").text == '"int"'
