"""What executors get of the driver's environment, and what the errors of their tasks say about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from psycopg import pq

from airflow_connect.errors import AccessError, DataError, UnavailableError
from airflow_connect.runtime import machines
from airflow_connect.runtime.machines import (
    GROUPS,
    DriverMachine,
    driver_machine,
    has_other_machines,
    name_machines,
    sent_names,
    sentence_about,
    taking_along,
)

SECRET = "hunter2-of-the-driver"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": SECRET}
STANDALONE = {"spark.master": "spark://host:7077"}


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No login in the environment, and a home without any."""
    for name in [*(name for group in GROUPS for name in (*group.sent, *group.own)), *dict(machines._OF_A_MACHINE)]:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def here(**members: object) -> DriverMachine:
    return DriverMachine(**{"host": machines.socket.gethostname(), **members})  # type: ignore[arg-type]


def test_task_has_the_drivers_login_and_its_process_has_none_of_it_afterwards():
    before = dict(os.environ)
    with taking_along(here(sent=KEYS)) as taken:
        assert {name: os.environ[name] for name in KEYS} == KEYS
        assert taken.names == tuple(KEYS)
    assert dict(os.environ) == before


def test_task_that_fails_leaves_no_login_either():
    with pytest.raises(ZeroDivisionError), taking_along(here(sent=KEYS)):
        raise ZeroDivisionError
    assert not set(KEYS) & set(os.environ)


@pytest.mark.parametrize(
    "own", ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]
)
def test_executor_with_a_login_of_its_own_keeps_it_whole(monkeypatch, own):
    monkeypatch.setenv(own, "mine")
    with taking_along(here(sent={**KEYS, "PGPASSWORD": "p"})) as taken:
        assert os.environ[own] == "mine"
        assert "AWS_SECRET_ACCESS_KEY" not in os.environ
        assert os.environ["PGPASSWORD"] == "p"
    assert set(taken.own) == set(KEYS)


def test_region_of_the_executor_is_no_login():
    os.environ["AWS_REGION"] = "eu-north-1"
    try:
        with taking_along(here(sent={**KEYS, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"})) as taken:
            assert os.environ["AWS_REGION"] == "eu-north-1"
        assert taken.names == tuple(KEYS)
    finally:
        del os.environ["AWS_REGION"]


def test_profile_is_taken_along_only_where_it_exists(bare_machine):
    with taking_along(here(sent={"AWS_PROFILE": "copies"})) as taken:
        assert "AWS_PROFILE" not in os.environ
    assert (taken.names, taken.unusable) == ((), ("AWS_PROFILE",))

    (bare_machine / ".aws").mkdir()
    (bare_machine / ".aws" / "config").write_text("[profile copies]\nregion=eu-north-1\n")
    with taking_along(here(sent={"AWS_PROFILE": "copies"})) as taken:
        assert os.environ["AWS_PROFILE"] == "copies"
    assert taken.names == ("AWS_PROFILE",)


def test_variable_that_names_a_file_is_taken_along_only_where_the_file_is(tmp_path):
    cache = tmp_path / "krb5cc"
    sent = {"KRB5CCNAME": f"FILE:{cache}", "PGPASSFILE": "/nowhere/pgpass", "PGUSER": "ada"}
    with taking_along(here(sent=sent)) as taken:
        assert (taken.names, taken.unusable) == (("PGUSER",), ("PGPASSFILE", "KRB5CCNAME"))
    cache.touch()
    with taking_along(here(sent=sent)) as taken:
        assert os.environ["KRB5CCNAME"] == f"FILE:{cache}"


def test_driver_names_its_variables_and_the_paths_of_its_configuration(monkeypatch, tmp_path, bare_machine):
    files = [tmp_path / name for name in ("ca.pem", "key.pem", "a.keytab", "root.crt")]
    for file in files:
        file.touch()
    ca, key, keytab, root = map(str, files)
    config = {
        "consumer.ssl.truststore.location": ca,
        "ssl.key": f"file://{key}",
        "sasl.jaas.config": f'Krb5LoginModule required keyTab="{keytab}" principal="p";',
        "connection.url": f"jdbc:postgresql://db/x?sslmode=verify-full&sslrootcert={root}",
        "topics": "/no/such/file",
        "tasks.max": 3,
    }
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    (bare_machine / ".pgpass").touch()

    machine = driver_machine(config, {})

    assert machine.sent == {"AWS_SECRET_ACCESS_KEY": SECRET}
    assert machine.kept == ("HTTPS_PROXY",)
    assert {path for path in machine.paths if path != "/etc/krb5.conf"} == {ca, key, keytab, root, "~/.pgpass"}
    assert SECRET not in repr(machine)


def test_error_names_both_machines_and_what_only_the_driver_has(bare_machine):
    error = AccessError("No AWS credentials were found.", code="s3.no_credentials", suggestion="Set them.")
    machine = DriverMachine(
        "driver-host", kept=("HTTPS_PROXY", "TNS_ADMIN"), paths=("/no/ca.pem", "~/.aws/credentials", "~/.pgpass")
    )
    with taking_along(machine) as taken:
        name_machines(error, machine, taken)

    host = machines.socket.gethostname()
    assert error.suggestion == (
        f"Set them. It happened on an executor on {host}; the driver runs on driver-host. Only the driver has, or can"
        " use: HTTPS_PROXY, /no/ca.pem, ~/.aws/credentials."
    )


def test_error_on_the_drivers_own_machine_says_nothing_if_nothing_is_missing():
    error = UnavailableError("The server is away.", code="kafka.unavailable", suggestion="Wait.")
    with taking_along(here(sent=KEYS, paths=("/",))) as taken:
        name_machines(error, here(sent=KEYS, paths=("/",)), taken)
    assert error.suggestion == "Wait."


def test_error_of_a_record_is_the_same_on_every_machine():
    error = DataError("Not a number.", suggestion="Mend it.")
    name_machines(error, DriverMachine("driver-host", paths=("/no/file",)), machines.Taken())
    assert error.suggestion == "Mend it."


def test_error_says_that_the_executor_used_a_login_of_its_own(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    error = AccessError("Denied.", code="s3.access_denied")
    with taking_along(here(sent=KEYS)) as taken:
        name_machines(error, here(sent=KEYS), taken)
    assert (
        "has a login of its own, so it did not get the driver's AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY."
        in error.suggestion
    )
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    ("spark", "others"),
    [
        ({}, False),
        ({"spark.master": "local[4]"}, False),
        (STANDALONE, True),
        ({"spark.master": "yarn"}, True),
        ({"spark.master": "k8s://https://x"}, True),
        ({"spark.remote": "sc://x"}, True),
    ],
)
def test_plan_names_variables_where_executors_are_elsewhere(spark, others):
    sentence = sentence_about(spark, KEYS)
    assert has_other_machines(spark) is others
    assert bool(sentence) is others
    assert SECRET not in sentence
    if others:
        assert sentence == (
            "Executors without a login of their own get AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY of the driver's"
            " environment."
        )


def test_driver_without_a_login_has_nothing_to_say():
    assert sentence_about(STANDALONE, {"AWS_SECRET_ACCESS_KEY": ""}) == ""
    assert sent_names({}) == ()


def test_clients_written_in_c_see_the_login_too():
    """Both libpq and hdfs-native ask the C library, not Python."""
    with taking_along(here(sent={"PGUSER": "ada"})):
        (user,) = (option.val for option in pq.Conninfo.get_defaults() if option.keyword == b"user")
    assert user == b"ada"
