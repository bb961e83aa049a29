"""Where a worker listens, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.control.rest.serving.settings import ServerSettings
from airflow_connect.errors import ConfigError
from tests.support.servers.certificates import as_pkcs12, self_signed

BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "users.properties"
    path.write_text("ann=correct horse\nbob=battery:staple\n")
    path.chmod(0o600)
    return {"rest.extension.classes": BASIC, "rest.basic.auth.file": str(path)}


def test_the_default_is_loopback_on_port_8083():
    settings = ServerSettings.from_worker({})
    assert (settings.listeners[0].url(8083), settings.worker_id(8083)) == ("http://127.0.0.1:8083", "127.0.0.1:8083")
    assert (settings.admin_listeners, settings.headers, settings.origins.patterns) == (None, (), ())


@pytest.mark.parametrize("listener", ["http://:8083", "http://0.0.0.0:8083", "HTTP://example.com:80", "http://[::]:1"])
def test_an_open_listener_beyond_loopback_is_refused(listener):
    with pytest.raises(ConfigError, match="without authentication") as refused:
        ServerSettings.from_worker({"listeners": listener})
    assert refused.value.config_path == "listeners"


def test_with_users_every_interface_is_possible(users):
    settings = ServerSettings.from_worker({"listeners": "http://:8083", **users})
    assert settings.listeners[0].host == "" and settings.users == {"ann": "correct horse", "bob": "battery:staple"}
    assert "horse" not in repr(settings)


def test_the_advertised_address_names_the_worker(users):
    given = {"listeners": "http://:8083", "rest.advertised.host.name": "connect-1", "rest.advertised.port": "443"}
    assert ServerSettings.from_worker({**given, **users}).worker_id(8083) == "connect-1:443"


def test_an_ipv6_address_is_written_in_brackets():
    settings = ServerSettings.from_worker({"listeners": "http://[::1]:8083"})
    assert (settings.listeners[0].host, settings.listeners[0].url(1)) == ("::1", "http://[::1]:1")


@pytest.mark.parametrize(
    ("listener", "message"),
    [
        ("127.0.0.1:8083", "is not a listener"),
        ("ftp://127.0.0.1:8083", "is not a listener"),
        ("http://127.0.0.1", "is not a listener"),
        ("http://127.0.0.1:99999", "has the port '99999'"),
        ("http://127.0.0.1:1,http://127.0.0.1:1", "names an address twice"),
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


@pytest.mark.parametrize("key", ["listeners", "admin.listeners"])
def test_several_listeners_are_possible_and_none_of_them_may_be_open(key):
    with pytest.raises(ConfigError, match="without authentication") as refused:
        ServerSettings.from_worker({key: "http://127.0.0.1:1,http://:2"})
    assert refused.value.config_path == key
    found = ServerSettings.from_worker({key: "http://127.0.0.1:1, https://127.0.0.1:2"})
    listeners = (found.listeners if key == "listeners" else found.admin_listeners) or ()
    assert [(each.scheme, each.port) for each in listeners] == [("http", 1), ("https", 2)]


def test_states_name_the_http_listener_unless_another_one_is_advertised():
    given = {"listeners": "https://127.0.0.1:8443,http://127.0.0.1:8083"}
    assert ServerSettings.from_worker(given).advertised().port == 8083
    assert ServerSettings.from_worker({**given, "rest.advertised.listener": "https"}).advertised().port == 8443
    with pytest.raises(ConfigError, match=r"rest\.advertised\.listener is 'ftp'"):
        ServerSettings.from_worker({**given, "rest.advertised.listener": "ftp"})


def test_an_empty_list_of_admin_listeners_means_none():
    assert ServerSettings.from_worker({"admin.listeners": ""}).admin_listeners == ()


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("https://ui.example.com", True),
        ("https://a.b.internal", True),
        ("https://ui.example.com.evil.org", False),
        ("https://uixexample.com", False),
        ("http://ui.example.com", False),
    ],
)
def test_origins_are_compared_whole_with_stars_for_any_text(origin, is_allowed):
    given = {"access.control.allow.origin": "https://ui.example.com, https://*.internal"}
    assert ServerSettings.from_worker(given).origins.allow(origin) is is_allowed


def test_an_unknown_method_for_pages_of_other_hosts_is_refused():
    with pytest.raises(ConfigError, match="names FETCH"):
        ServerSettings.from_worker({"access.control.allow.methods": "GET,FETCH"})


def test_headers_of_answers_are_read_as_kafka_connect_reads_them():
    given = 'set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store",setDate Expires: 0'
    found = ServerSettings.from_worker({"response.http.headers.config": given}).headers
    assert [(rule.replaces, rule.name, rule.value) for rule in found] == [
        (True, "x-frame-options", "DENY"),
        (False, "cache-control", "no-cache, no-store"),
        (True, "expires", "0"),
    ]
    assert found[2].text().endswith(" GMT")


@pytest.mark.parametrize("rule", ["X-Frame-Options: DENY", "set X: a\u00e9", "set X Y: z", "setDate X: soon", "set X:"])
def test_a_rule_for_headers_that_is_none_is_refused(rule):
    with pytest.raises(ConfigError, match="is no rule") as refused:
        ServerSettings.from_worker({"response.http.headers.config": rule})
    assert refused.value.config_path == "response.http.headers.config"


HTTPS = {"listeners": "https://127.0.0.1:8443"}
STORE = "listeners.https.ssl.keystore."


def test_keys_without_the_prefix_count_only_if_there_is_none_with_it(tmp_path):
    pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self_signed(tmp_path))}
    ServerSettings.from_worker({**HTTPS, **pem}).check()
    with pytest.raises(ConfigError, match=r"listeners\.https\.ssl\.keystore\.location is missing"):
        ServerSettings.from_worker({**HTTPS, **pem, "listeners.https.ssl.client.auth": "none"}).check()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"ssl\.keystore\.location is missing, but a listener is https"),
        ({f"{STORE}location": "/k.jks"}, r"ssl\.keystore\.type is JKS, which cannot be read here"),
        ({f"{STORE}location": "/no.p12", f"{STORE}type": "PKCS12"}, "No such file"),
        ({f"{STORE}location": "/no.pem", f"{STORE}type": "PEM"}, "No such file"),
        ({f"{STORE}certificate.chain": "no PEM", f"{STORE}type": "PEM"}, "cannot be used"),
        ({f"{STORE}location": "/k", "listeners.https.ssl.enabled.protocols": "SSLv3"}, "names SSLv3"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused_with_its_key(given, message):
    with pytest.raises(ConfigError, match=message) as refused:
        ServerSettings.from_worker({**HTTPS, **given}).check()
    assert refused.value.suggestion


def test_a_wrong_password_of_a_key_is_told_without_it(tmp_path):
    store = tmp_path / "keystore.p12"
    store.write_bytes(as_pkcs12(self_signed(tmp_path), "right"))
    given = {f"{STORE}type": "PKCS12", f"{STORE}location": str(store), f"{STORE}password": "wrong-hunter2"}
    with pytest.raises(ConfigError, match="cannot be used") as refused:
        ServerSettings.from_worker({**HTTPS, **given}).check()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"client.auth": "always"}, r"client\.auth is 'always'"),
        ({"client.auth": "required"}, r"truststore\.location is missing"),
        ({"client.auth": "required", "truststore.location": "/t.jks"}, r"truststore\.type is JKS"),
        ({"client.auth": "requested", "truststore.location": "/no.pem", "truststore.type": "PEM"}, "No such file"),
    ],
)
def test_certificates_of_clients_need_authorities(tmp_path, more, message):
    pem = {f"{STORE}type": "PEM", f"{STORE}location": str(self_signed(tmp_path))}
    given = {**HTTPS, **pem, **{f"listeners.https.ssl.{key}": value for key, value in more.items()}}
    with pytest.raises(ConfigError, match=message):
        ServerSettings.from_worker(given).check()
