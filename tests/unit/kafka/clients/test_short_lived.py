from __future__ import annotations

import logging
import time
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    FencedError,
    NotStoppedError,
    OffsetError,
    UnavailableError,
)
from airflow_connect.kafka.clients import short_lived as clients


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("_FENCED", FencedError),
        ("PRODUCER_FENCED", FencedError),
        ("INVALID_PRODUCER_EPOCH", FencedError),
        ("TOPIC_AUTHORIZATION_FAILED", AccessError),
        ("GROUP_AUTHORIZATION_FAILED", AccessError),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", AccessError),
        ("_AUTHENTICATION", AccessError),
        ("UNKNOWN_TOPIC_OR_PART", AccessError),
        ("UNKNOWN_MEMBER_ID", NotStoppedError),
        ("OFFSET_OUT_OF_RANGE", OffsetError),
        ("MSG_SIZE_TOO_LARGE", ConfigError),
        ("INVALID_TRANSACTION_TIMEOUT", ConfigError),
        ("UNSUPPORTED_VERSION", ConfigError),
        ("_TIMED_OUT", UnavailableError),
        ("_TRANSPORT", UnavailableError),
        ("COORDINATOR_NOT_AVAILABLE", UnavailableError),
    ],
)
def test_translate_of_a_kafka_error_gives_our_kind_and_says_what_was_going_on(
    code: str, kind: type[ConnectError]
) -> None:
    error = clients.translate(KafkaException(KafkaError(getattr(KafkaError, code))), "reading x-0@5")
    assert type(error) is kind
    assert "reading x-0@5" in error.message


def test_ensure_reachable_with_nobody_listening_names_bootstrap_servers_in_time(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler())
    client = clients.producer({"bootstrap.servers": "127.0.0.1:1"})
    started = time.monotonic()
    with pytest.raises(UnavailableError, match=r"bootstrap\.servers=127\.0\.0\.1:1 .*Connection refused") as caught:
        clients.ensure_reachable(client, timeout_s=0.5)
    assert time.monotonic() - started < clients.BOOTSTRAP_TIMEOUT_S
    assert caught.value.config_path == "bootstrap.servers"
    assert capfd.readouterr() == ("", "")


def test_clients_with_a_broken_setting_fail_as_configuration() -> None:
    with pytest.raises(ConfigError, match="security"):
        clients.producer({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "nonsense"})


def test_wait_for_an_answer_that_never_comes_is_bounded() -> None:
    with pytest.raises(UnavailableError, match="while listing"):
        clients.wait(Future(), "listing", timeout_s=0.01)
