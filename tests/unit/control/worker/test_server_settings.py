"""Where a worker listens, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.control.worker.settings import ServerSettings
from airflow_connect.errors import ConfigError
from tests.support.servers.certificates import self_signed

BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "users.properties"
    path.write_text("ann=correct horse\nbob=battery:staple\n")
    path.chmod(0o600)
    return {"rest.extension.classes": BASIC, "rest.basic.auth.file": str(path)}


def test_the_default_is_loopback_on_port_8083():
    settings = ServerSettings.from_worker({})
    assert (settings.url(8083), settings.worker_id(8083)) == ("http://127.0.0.1:8083", "127.0.0.1:8083")


@pytest.mark.parametrize("listener", ["http://:8083", "http://0.0.0.0:8083", "HTTP://example.com:80", "http://[::]:1"])
def test_an_open_listener_beyond_loopback_is_refused(listener):
    with pytest.raises(ConfigError, match="without authentication") as refused:
        ServerSettings.from_worker({"listeners": listener})
    assert refused.value.config_path == "listeners"


def test_with_users_every_interface_is_possible(users):
    settings = ServerSettings.from_worker({"listeners": "http://:8083", **users})
    assert settings.host == "" and settings.users == {"ann": "correct horse", "bob": "battery:staple"}
    assert "horse" not in repr(settings)


def test_the_advertised_address_names_the_worker(users):
    given = {"listeners": "http://:8083", "rest.advertised.host.name": "connect-1", "rest.advertised.port": "443"}
    assert ServerSettings.from_worker({**given, **users}).worker_id(8083) == "connect-1:443"


def test_an_ipv6_address_is_written_in_brackets():
    settings = ServerSettings.from_worker({"listeners": "http://[::1]:8083"})
    assert (settings.host, settings.url(1)) == ("::1", "http://[::1]:1")


@pytest.mark.parametrize(
    ("listener", "message"),
    [
        ("127.0.0.1:8083", "is no listener"),
        ("ftp://127.0.0.1:8083", "is no listener"),
        ("http://127.0.0.1", "is no listener"),
        ("http://127.0.0.1:99999", "has the port '99999'"),
        ("http://127.0.0.1:1,https://127.0.0.1:2", "names several listeners"),
    ],
)
def test_a_listener_that_is_none_is_refused(listener, message):
    with pytest.raises(ConfigError, match=message):
        ServerSettings.from_worker({"listeners": listener})


def test_one_of_the_two_keys_of_authentication_is_not_enough(users):
    for key in users:
        with pytest.raises(ConfigError, match="no request would be authenticated"):
            ServerSettings.from_worker({key: users[key]})


def test_an_unknown_extension_is_refused(users):
    with pytest.raises(ConfigError, match=r"names com\.example\.Audit"):
        ServerSettings.from_worker({**users, "rest.extension.classes": f"{BASIC},com.example.Audit"})


@pytest.mark.parametrize(("text", "mode"), [("ann=secret", 0o604), ("", 0o600), ("ann=", 0o600)])
def test_a_file_of_users_that_everybody_reads_or_that_has_none_is_refused(users, text, mode):
    path = Path(users["rest.basic.auth.file"])
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(ConfigError) as refused:
        ServerSettings.from_worker(users)
    assert refused.value.config_path == "rest.basic.auth.file" and "secret" not in str(refused.value)


def test_a_missing_file_of_users_is_refused(users, tmp_path):
    with pytest.raises(ConfigError, match="FileNotFoundError"):
        ServerSettings.from_worker({**users, "rest.basic.auth.file": str(tmp_path / "no")})


def test_https_takes_a_pem_file(tmp_path):
    given = {
        "listeners": "https://127.0.0.1:8443",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(self_signed(tmp_path)),
    }
    settings = ServerSettings.from_worker(given)
    assert settings.tls()["ssl_certfile"] == given["listeners.https.ssl.keystore.location"]


@pytest.mark.parametrize(
    "given",
    [{}, {"ssl.keystore.location": "/k.jks"}, {"ssl.keystore.location": "/k.p12", "ssl.keystore.type": "PKCS12"}],
)
def test_https_without_a_pem_file_is_refused(given):
    with pytest.raises(ConfigError, match="listeners is https, but"):
        ServerSettings.from_worker({"listeners": "https://127.0.0.1:8443", **given})


def test_a_broken_certificate_is_refused(tmp_path):
    path = tmp_path / "server.pem"
    path.write_text("no certificate")
    settings = ServerSettings(scheme="https", certificate=str(path))
    with pytest.raises(ConfigError, match=r"The certificate in .* cannot be used"):
        settings.tls()
