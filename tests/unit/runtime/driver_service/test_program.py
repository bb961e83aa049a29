"""The service as a process, asked by HTTP, with real driver processes whose runs are scripted."""

from __future__ import annotations

import io
import json
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_connect.cli.commands import driver_service
from airflow_connect.cli.main import build_parser
from airflow_connect.cli.terminal import Terminal
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.driver_service.contract import RunView
from airflow_connect.runtime.driver_service.serving import TOKEN_ENV
from airflow_connect.runtime.spec import RunSpec, new_run_id
from tests.support.processes.drivers import fake_driver_env, is_alive
from tests.support.processes.proc import command_lines
from tests.support.servers.certificates import self_signed
from tests.support.servers.driver_service import TOKEN, DriverServiceProcess, pids_in
from tests.support.waiting import wait_until

CHILDREN_OF_HANG = 4
PATIENCE_S = 60.0
SECRET = "opensesame-1"


@pytest.fixture(scope="module")
def service() -> Iterator[DriverServiceProcess]:
    with DriverServiceProcess("--lease", "60", env=fake_driver_env()) as started:
        yield started


@pytest.fixture
def client(service: DriverServiceProcess) -> Iterator[httpx.Client]:
    with client_of(service) as made:
        yield made


def client_of(service: DriverServiceProcess, token: str = TOKEN, **options: Any) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=service.url, headers=headers, timeout=30, **options)


def start(client: httpx.Client, **connector: Any) -> str:
    spec = RunSpec({"name": "c", **connector}, {"sasl.password": SECRET}, new_run_id())
    client.put(f"/v1/runs/{spec.run_id}", json=spec.to_json()).raise_for_status()
    return spec.run_id


def wait_for_end(client: httpx.Client, run_id: str) -> RunView:
    def view() -> RunView:
        return RunView.from_json(client.get(f"/v1/runs/{run_id}").raise_for_status().json())

    wait_until(lambda: view().state == "ended", f"run {run_id} to end", PATIENCE_S)
    return view()


@pytest.fixture
def hanging(tmp_path: Path) -> tuple[dict[str, str], Callable[[], list[int]]]:
    """The configuration of a run that hangs with children of all kinds, and their pids."""
    paths = {name: str(tmp_path / name) for name in ("pids", "stopped", "committed")}
    return {"fake": "hang", **paths}, lambda: pids_in(tmp_path / "pids")


def test_run_goes_to_a_driver_and_comes_back_as_events_and_report(client: httpx.Client) -> None:
    run_id = start(client, fake="copy")
    view = wait_for_end(client, run_id)
    report = RunReport.from_json(dict(view.report or {}))
    assert (report.run_id, report.records, report.committed) == (run_id, 20, {"meetups-0": 10, "meetups-1": 10})
    news = client.post("/v1/look", json={"runs": [run_id]}).json()["runs"][run_id]
    kinds = [entry["event"] for entry in news["entries"] if entry["event"] != "log"]
    assert kinds == ["start", "phase", "plan", "phase", "progress"]
    assert client.delete(f"/v1/runs/{run_id}").json()["report"] == report.to_json()
    assert client.get(f"/v1/runs/{run_id}").status_code == 404


def test_secrets_stay_out_of_answers_command_lines_and_environment(
    service: DriverServiceProcess, client: httpx.Client
) -> None:
    run_id = start(client, fake="echo")
    view = wait_for_end(client, run_id)
    news = client.post("/v1/look", json={"runs": [run_id]}).json()["runs"][run_id]
    seen = next(entry for entry in news["entries"] if entry["event"] == "warning")
    assert seen["seen"]["worker"] == {"sasl.password": "[hidden]"}
    assert "AIRFLOW_CONNECT_DRIVER_TOKEN" not in seen["env"]
    assert {"event": "log", "line": "password is [hidden]"} in news["entries"]
    everything = [json.dumps(news), json.dumps(view.to_json()), service.printed, *(line for _, line in command_lines())]
    assert [secret for secret in (SECRET, TOKEN) if any(secret in text for text in everything)] == []


def test_delete_ends_driver_and_children_before_it_answers(
    client: httpx.Client, hanging: tuple[dict[str, str], Callable[[], list[int]]], tmp_path: Path
) -> None:
    config, pids = hanging
    run_id = start(client, **config)
    wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the run has its children", PATIENCE_S)
    view = client.delete(f"/v1/runs/{run_id}").raise_for_status().json()
    assert (view["state"], view["ended_by"]) == ("ended", "request")
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert not (tmp_path / "committed").exists()


def test_lease_ends_driver_and_children(
    hanging: tuple[dict[str, str], Callable[[], list[int]]], tmp_path: Path
) -> None:
    config, pids = hanging
    with DriverServiceProcess("--lease", "2", env=fake_driver_env()) as service, client_of(service) as client:
        run_id = start(client, **config, deaf=True)

        def is_asked_after_and_has_children() -> bool:
            return client.get(f"/v1/runs/{run_id}").is_success and len(pids()) == CHILDREN_OF_HANG

        wait_until(is_asked_after_and_has_children, "the run has its children", PATIENCE_S)
        wait_until(lambda: not any(map(is_alive, pids())), "the lease to end them", PATIENCE_S)
        view = wait_for_end(client, run_id)
    assert view.ended_by == "lease"
    assert f"Run {run_id} is ended: nobody asked after it for 2 seconds." in service.printed
    assert not (tmp_path / "committed").exists()


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_end_of_the_service_ends_its_drivers(
    hanging: tuple[dict[str, str], Callable[[], list[int]]], tmp_path: Path, number: signal.Signals, exit_code: int
) -> None:
    config, pids = hanging
    service = DriverServiceProcess(env=fake_driver_env())
    with service, client_of(service) as client:
        start(client, **config)
        wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the run has its children", PATIENCE_S)
        assert service.end(number) == exit_code
        wait_until(lambda: not any(map(is_alive, pids())), "driver and children to end", PATIENCE_S)
    assert not (tmp_path / "committed").exists()


@pytest.mark.parametrize("token", ["", "wrong", f"{TOKEN}x"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/runs/r"),
        ("GET", "/v1/runs/r"),
        ("DELETE", "/v1/runs/r"),
        ("POST", "/v1/look"),
        ("GET", "/v1/service"),
        ("GET", "/nothing"),
    ],
)
def test_nothing_is_answered_without_the_token(
    service: DriverServiceProcess, method: str, path: str, token: str
) -> None:
    with client_of(service, token) as client:
        answer = client.request(method, path, json={"runs": []})
    assert (answer.status_code, answer.json()["code"]) == (401, "driver_service.token")


@pytest.mark.parametrize(
    ("run_id", "content", "message"),
    [
        ("r", b"{", "not JSON"),
        ("r", b"[]", "not the specification of a run"),
        ("r", b'{"connector": {}, "worker": {}, "new": 1}', "not the specification of a run"),
        ("r", b'{"connector": {}, "worker": {}, "run_id": "other"}', "not the specification of run r"),
        ("r", b'{"connector": "x", "worker": {}, "run_id": "r"}', "got `str` - at `$.connector`"),
        ("r%20r", b'{"connector": {}, "worker": {}, "run_id": "r r"}', "A run id has"),
    ],
)
def test_wrong_requests_are_refused(client: httpx.Client, run_id: str, content: bytes, message: str) -> None:
    answer = client.put(f"/v1/runs/{run_id}", content=content)
    assert (answer.status_code, answer.json()["code"]) == (400, "driver_service.request")
    assert message in answer.json()["message"]


def test_look_at_what_is_no_run_id_is_refused(client: httpx.Client) -> None:
    answer = client.post("/v1/look", content=b'{"runs": ["\\ud800"]}')
    assert (answer.status_code, answer.json()["code"]) == (400, "driver_service.request")


def test_too_large_request_is_refused(client: httpx.Client) -> None:
    answer = client.put("/v1/runs/r", content=(b" " * (1 << 20) for _ in range(40)))
    assert (answer.status_code, "larger than 32 MiB" in answer.text) == (400, True)


def test_without_token_only_loopback_hosts_are_answered_and_no_web_pages() -> None:
    with DriverServiceProcess(token="") as service, client_of(service, "") as client:
        assert client.get("/v1/service").json()["running"] == 0
        strangers = [{"Host": "rebound.example.com"}, {"Origin": "https://evil.example.com"}, {"Origin": "null"}]
        strangers.append({"Sec-Fetch-Site": "cross-site"})  # A browser sends no Origin with some requests.
        for headers in strangers:
            answer = client.post("/v1/look", content=b'{"runs": []}', headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "driver_service.token")
    assert "It has no token" in service.printed


def test_certificate_makes_it_https(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    trust = ssl.create_default_context(cafile=certificate)
    with (
        DriverServiceProcess("--cert", str(certificate)) as service,
        client_of(service, verify=trust) as client,
    ):
        assert service.url.startswith("https://")
        assert client.get("/v1/service").is_success


def refusal(*options: str) -> ConnectError:
    """What the command line answers to wrong options."""
    arguments = build_parser().parse_args(["driver-service", "--port", "0", *options])
    with pytest.raises(ConnectError) as raised:
        driver_service.run(arguments, Terminal(io.StringIO(), io.StringIO()))
    return raised.value


@pytest.mark.parametrize(
    ("options", "token", "message"),
    [
        (["--host", "0.0.0.0"], "", "would listen on 0.0.0.0 without a token"),
        (["--host", "::"], "", "would listen on :: without a token"),
        (["--host", "spark-gateway"], "", "would listen on spark-gateway without a token"),
        ([], "short", "shorter than 16 characters"),
        (["--token-file", "/no/such/file"], "", "cannot be read from /no/such/file"),
        (["--cert", "/no/such/file"], "", "The certificate cannot be used"),
        (["--key", "/no/such/file"], "", "--key is given without --cert"),
    ],
)
def test_wrong_settings_are_refused(
    options: list[str], token: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_ENV, token)
    error = refusal(*options)
    assert error.exit_code == 2
    assert message in error.message
    assert error.suggestion


def test_number_out_of_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        build_parser().parse_args(["driver-service", "--at-once", "0"])
    assert "'0' is not a number from 1 to 1000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "mode", "why"), [(TOKEN, 0o644, "every user of this machine"), ("\n", 0o600, "empty")]
)
def test_unfit_token_file_is_refused(tmp_path: Path, content: str, mode: int, why: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(mode)
    error = refusal("--token-file", str(file))
    assert why in error.message
    assert TOKEN not in str(error)


def test_token_file_is_used(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    with (
        DriverServiceProcess("--token-file", str(file), token="") as service,
        client_of(service) as client,
    ):
        assert client.get("/v1/service").is_success


def test_taken_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = refusal("--port", str(port))
    assert (error.code, error.exit_code) == ("driver_service.address", 1)
    assert f"cannot listen on 127.0.0.1:{port}" in error.message
