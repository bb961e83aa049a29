"""What the hook of the driver service makes of answers that the service did not give."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.hooks.connect_driver import ConnectDriverHook
from tests.unit.registry.registry_double import RegistryDouble


def hook_of(url: str, monkeypatch: pytest.MonkeyPatch) -> ConnectDriverHook:
    parts = urlsplit(url)
    connection = {"conn_type": "connect_driver", "host": parts.hostname, "port": parts.port, "password": "token"}
    monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(connection))
    return ConnectDriverHook("our_driver", retry_s=0)


def test_run_that_the_service_does_not_know_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with RegistryDouble((404, {"message": "There is no such run."})) as service:
        assert hook_of(service.url, monkeypatch).view("r1") is None


@pytest.mark.parametrize("page", [b"default backend - 404", {"detail": "Not Found"}, {"message": "no Route matched"}])
def test_missing_page_of_a_proxy_is_no_unknown_run(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with RegistryDouble((404, page)) as service, pytest.raises(ConfigError, match="not the answer of a driver service"):
        hook_of(service.url, monkeypatch).view("r1")
