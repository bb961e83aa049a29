"""What each page says, to whom, and what its buttons do: real topics, real runs, Airflow's own login."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.airflow.ui.conftest import CONN_ID, ORIGIN, ROLES
from tests.support.copies.showcase import DAG_ORIGIN, FAILING, HEALTHY, LAGGING, NEW, OF_DAG, PAUSED, SECRET, Showcase
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

BrowserOf = Callable[[str], TestClient]
LIST = f"/airflow-connect/{CONN_ID}"


def text_of(page: str) -> str:
    """What a person reads, with one space between words."""
    live = page[page.index('id="live"') :]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", live)))


def complete(browser: TestClient, path: str, wanted: str, **query: str) -> str:
    """The page, once what it reads in the background is there."""
    found = ""

    def is_there() -> bool:
        nonlocal found
        answer = browser.get(path, params=query)
        if answer.status_code == 503 and "Try again" in answer.text:
            return False
        assert answer.status_code == 200, answer.text
        found = answer.text
        return wanted in text_of(found)

    wait_until(is_there, f"{wanted!r} on {path}")
    return found


def names_of(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*connector\?name=([^"]+)"', page)


def last_entry() -> tuple[str, str, dict[str, Any]]:
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(Log).order_by(Log.id.desc()).first()
        return found.event, found.owner, json.loads(found.extra)


# --- access ----------------------------------------------------------------------------------------------------------


def routes() -> list[tuple[str, str]]:
    """Every page; style sheet and script are for everybody."""
    from airflow_connect.ui.pages.app import create_app

    found = [route for route in create_app().routes if isinstance(route, Route)]
    every = [(method, route.path.replace("{conn_id}", CONN_ID)) for route in found for method in route.methods or ()]
    return [(method, path) for method, path in every if not path.startswith("/static/")]


def test_no_page_is_shown_without_a_login(application: FastAPI) -> None:
    stranger = TestClient(application, base_url=ORIGIN, headers={"Origin": ORIGIN})
    every = routes()
    assert len(every) >= 16
    for method, path in every:
        answer = stranger.request(method, f"/airflow-connect{path}")
        assert answer.status_code == 401, (method, path)
        assert method == "HEAD" or "Please log in" in answer.text
    page = stranger.get(f"{LIST}/connector", params={"name": "a/b"}).text
    assert f'href="/plugin/kafka-connect/airflow-connect/{CONN_ID}/connector?name=a%2Fb"' in page


def test_no_change_is_made_for_a_viewer_or_for_a_page_of_another_site(
    browser_of: BrowserOf, showcase: Showcase
) -> None:
    posts = [path for method, path in routes() if method == "POST"]
    assert len(posts) >= 4
    before = showcase.herder.status(HEALTHY)
    for path in posts:
        form = {"do": f"pause:{HEALTHY}", "confirmed": "yes", "wanted": "{}", "before": "{}"}
        refused = browser_of("viewer").post(f"/airflow-connect{path}", data=form, params={"name": HEALTHY})
        assert refused.status_code == 403
        assert "User viewer has no permission" in refused.text
        strange = {"Origin": "http://evil.example.com"}
        refused = browser_of("admin").post(f"/airflow-connect{path}", data=form, headers=strange)
        assert refused.status_code == 403
    assert showcase.herder.status(HEALTHY) == before


@pytest.mark.parametrize("role", ROLES)
def test_a_button_is_there_only_for_those_whose_click_would_work(browser_of: BrowserOf, role: str) -> None:
    browser = browser_of(role)
    page = complete(browser, LIST, HEALTHY)
    assert ('name="do"' in page) is (role != "viewer")
    assert ('type="checkbox"' in page) is (role != "viewer")
    page = complete(browser, f"{LIST}/connector", "Offsets", name=HEALTHY)
    assert (f"restart:{HEALTHY}" in page) is (role != "viewer")
    assert ("Set or reset offsets" in page) is (role in ("op", "admin"))


def test_airflow_has_a_menu_entry_and_tabs_of_its_own_for_the_pages(
    application: FastAPI, tokens: dict[str, str]
) -> None:
    client = TestClient(application, base_url=ORIGIN, headers={"Authorization": f"Bearer {tokens['admin']}"})
    (plugin,) = [p for p in client.get("/api/v2/plugins").json()["plugins"] if p["name"] == "airflow_connect"]
    views = {view["destination"]: view["href"] for view in plugin["external_views"]}
    assert sorted(views) == ["dag", "dag_run", "nav", "task_instance"]
    assert views["task_instance"] == "airflow-connect/of?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}"
    assert client.get("/api/v2/plugins/importErrors").json()["total_entries"] == 0


# --- the list --------------------------------------------------------------------------------------------------------


def test_the_list_begins_with_what_has_failed_and_says_what_helps(browser_of: BrowserOf) -> None:
    page = complete(browser_of("viewer"), LIST, LAGGING)
    names = names_of(page)
    assert names[0] == FAILING
    assert sorted(names) == sorted([FAILING, HEALTHY, LAGGING, PAUSED, OF_DAG, NEW])
    told = text_of(page)
    assert "The directory /mnt/invoices cannot be written: No space left on device. Free some space." in told
    assert f"{LAGGING} sink · LocalSinkConnector · Has new records 90" in told
    assert f"{HEALTHY} sink · LocalSinkConnector ✓ Up to date 0" in told
    assert f"{NEW} sink · LocalSinkConnector · Has not run yet" in told
    assert f"{PAUSED} sink · LocalSinkConnector · Paused" in told
    assert re.search(f"{OF_DAG} sink · DAG nightly (✓ Up to date|· Paused) 0", told)  # other tests keep a paused DAG
    assert "6 in all 1 failed" in told


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "failed"}, [FAILING]),
        ({"q": "CLICK"}, [LAGGING]),
        ({"q": "topic.name dlq"}, [FAILING]),
        ({"q": "sasl.password"}, [HEALTHY]),
        ({"q": SECRET}, []),
        ({"q": "orders", "state": "failed"}, []),
    ],
    ids=str,
)
def test_the_list_is_filtered_by_state_and_by_words(
    browser_of: BrowserOf, query: dict[str, str], expected: list[str]
) -> None:
    browser = browser_of("viewer")
    complete(browser, LIST, HEALTHY)
    page = browser.get(LIST, params=query).text
    assert names_of(page) == expected
    assert ("None of the 6 connectors matches." in text_of(page)) is (not expected)


def test_connectors_are_paused_and_resumed_together_and_each_has_its_audit_entry(
    browser_of: BrowserOf, showcase: Showcase
) -> None:
    user = browser_of("user")
    answer = user.post(LIST, data={"do": "pause", "name": [HEALTHY, LAGGING]})
    assert answer.history[0].status_code == 303
    assert "2 of 2 connectors paused." in answer.text
    assert [c for c in (HEALTHY, LAGGING) if showcase.herder.status(c)["connector"]["state"] == "PAUSED"] == [
        HEALTHY,
        LAGGING,
    ]
    extra = {"connection": CONN_ID, "connector": LAGGING, "via": "page"}
    assert last_entry() == ("connect.pause_connector", "user", extra)
    answer = user.post(LIST, data={"do": "resume", "name": [HEALTHY, LAGGING, "gone"]})
    assert "2 of 3 connectors resumed. gone: Unknown connector gone" in html.unescape(answer.text)
    assert "Choose at least one connector first." in user.post(LIST, data={"do": "resume"}).text
    refused = user.post(LIST, data={"do": "explode", "name": HEALTHY})
    assert (refused.status_code, "There is no action" in refused.text) == (400, True)


def test_a_button_of_a_connector_leads_back_to_it(browser_of: BrowserOf, showcase: Showcase) -> None:
    form = {"do": f"restart:{FAILING}", "back": f"connector:{FAILING}"}
    answer = browser_of("op").post(LIST, data=form)
    assert str(answer.url).startswith(f"{ORIGIN}{LIST}/connector?name={FAILING}")
    assert f"{FAILING} was restarted." in answer.text
    assert last_entry()[0] == "connect.restart_connector"
    showcase.ended(FAILING, "The directory /mnt/invoices cannot be written: No space left on device. Free some space.")


# --- one connector ---------------------------------------------------------------------------------------------------


def test_a_connector_shows_runs_lag_plan_and_changes_but_no_secret(browser_of: BrowserOf, showcase: Showcase) -> None:
    browser = browser_of("viewer")
    change = "producer.override.sasl.password not set [hidden]"

    def shown() -> str:
        return complete(browser, f"{LIST}/connector", "Nothing: everything is copied.", name=HEALTHY)

    # Another test may have changed it and changed it back: a page shows what was known a moment ago.
    wait_until(lambda: change in text_of(shown()), "the last change")
    page = shown()
    told = text_of(page)
    assert SECRET not in page
    assert change in told
    assert "flush.size 10 20" in told
    for report in showcase.runs[HEALTHY]:
        assert f"run={report.run_id}" in page
    end = showcase.runs[HEALTHY][-1].committed[f"{showcase.topics[HEALTHY]}-0"]
    assert f"{showcase.topics[HEALTHY]}-0 {end} {end} 0" in told
    page = complete(browser, f"{LIST}/connector", "Records, at most", name=LAGGING)
    assert "Tasks 2 Records, at most 90" in text_of(page)
    assert "about" in text_of(page)


def test_dead_letters_are_counted_by_reason_and_shown_as_text(browser_of: BrowserOf) -> None:
    page = complete(browser_of("viewer"), f"{LIST}/connector", "4 letters", name=FAILING)
    told = text_of(page)
    assert "VALUE_CONVERTER" in told
    assert "<script>alert(3)</script>" in told
    assert "<script>alert" not in page


def test_a_connector_of_a_dag_leads_to_its_dag_and_says_what_is_not_known(browser_of: BrowserOf) -> None:
    page = complete(browser_of("op"), f"{LIST}/connector", "It is part of a DAG", name=OF_DAG)
    assert '<a data-airflow href="/dags/nightly">DAG nightly</a>' in page
    assert 'name="do"' not in page


def test_unknown_names_are_answered_with_what_is_known(browser_of: BrowserOf) -> None:
    browser = browser_of("viewer")
    complete(browser, LIST, HEALTHY)
    answer = browser.get(f"{LIST}/connector", params={"name": "orderz"})
    assert (answer.status_code, "Did you mean orders?" in answer.text) == (404, True)
    answer = browser.get("/airflow-connect/other")
    assert answer.status_code == 404
    assert "worker_conn_ids" in answer.text
    answer = browser.get(f"{LIST}/nothing/here")
    assert (answer.status_code, "There is no such page." in answer.text) == (404, True)
    answer = browser.get("/airflow-connect/static/../app.py")
    assert answer.status_code == 404


# --- a run -----------------------------------------------------------------------------------------------------------


def test_a_run_shows_phases_tasks_audit_and_files(browser_of: BrowserOf, showcase: Showcase) -> None:
    report = showcase.runs[FAILING][0]
    query = {"name": FAILING, "run": report.run_id}
    page = complete(browser_of("viewer"), f"{LIST}/run", "Audit", **query)
    told = text_of(page)
    assert report.detail is not None
    first = report.detail.partitions[0]
    assert first.dead_lettered == 4
    place = f"{first.topic}-{first.partition}"
    assert f"{place} {first.start} {first.end} {first.read} = {first.written} 0 4 0" in told
    assert "Where the time went" in told and "copy: " in page and "other: " in page
    assert f"task 0 on {report.detail.tasks[0].host}, attempt 1: " in page
    file = report.detail.files[0]
    assert f"{file.key} {file.topic}-{file.partition} {file.start} {file.end} {file.records} " in told


def test_a_run_of_a_dag_leads_to_its_task(browser_of: BrowserOf, showcase: Showcase) -> None:
    report = showcase.runs[OF_DAG][0]
    page = complete(browser_of("viewer"), f"{LIST}/run", "Its task in Airflow", name=OF_DAG, run=report.run_id)
    assert 'href="/dags/nightly/runs/manual__2026-11-23T01%3A00%3A00%2B00%3A00/tasks/copy"' in page


def test_a_run_that_the_history_does_not_have_is_not_found(browser_of: BrowserOf) -> None:
    browser = browser_of("viewer")
    complete(browser, LIST, HEALTHY)
    answer = browser.get(f"{LIST}/run", params={"name": HEALTHY, "run": "20200101T000000-abcdef"})
    wait_until(
        lambda: (
            browser.get(f"{LIST}/run", params={"name": HEALTHY, "run": "20200101T000000-abcdef"}).status_code == 404
        ),
        "the run to be looked for",
    )
    assert "20200101T000000-abcdef" in answer.text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"dag_id": "other"}, []),
        ({"dag_id": DAG_ORIGIN["dag_id"]}, [OF_DAG]),
        ({"dag_id": DAG_ORIGIN["dag_id"], "run_id": DAG_ORIGIN["dag_run_id"], "task_id": "copy"}, [OF_DAG]),
        ({"dag_id": DAG_ORIGIN["dag_id"], "task_id": "other"}, []),
    ],
    ids=str,
)
def test_the_tab_of_a_dag_a_run_or_a_task_shows_what_it_has_run(
    browser_of: BrowserOf, query: dict[str, str], expected: list[str]
) -> None:
    browser = browser_of("viewer")
    complete(browser, LIST, HEALTHY)
    page = browser.get("/airflow-connect/of", params=query).text
    assert re.findall(r'connector\?name=([^"]+)"', page) == expected
    assert ("No run of a connector is known here" in page) is (not expected)


def test_the_link_of_a_task_leads_to_its_connector(browser_of: BrowserOf) -> None:
    browser = browser_of("viewer")
    complete(browser, LIST, HEALTHY)
    query = {"dag_id": DAG_ORIGIN["dag_id"], "connector": OF_DAG}
    answer = browser.get("/airflow-connect/of", params=query)
    assert str(answer.url) == f"{ORIGIN}{LIST}/connector?name={OF_DAG}"
    page = browser.get("/airflow-connect/of", params={**query, "connector": "not-yet"}).text
    assert re.findall(r'connector\?name=([^"]+)"', page) == [OF_DAG]
    assert browser.get("/airflow-connect/of").status_code == 400


# --- cluster ---------------------------------------------------------------------------------------------------------


def test_the_cluster_tells_when_a_topic_loses_what_was_not_copied(browser_of: BrowserOf, showcase: Showcase) -> None:
    page = complete(browser_of("viewer"), f"{LIST}/cluster", "This topic loses data in 7 days")
    assert f"{LAGGING} is at a record of {showcase.topics[LAGGING]}-" in text_of(page)
    assert "worker-1:8083" in text_of(page)


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_offsets_are_previewed_confirmed_and_set_only_while_the_connector_is_stopped(
    browser_of: BrowserOf, showcase: Showcase
) -> None:
    op, address, topic = browser_of("op"), f"{LIST}/offsets", showcase.topics[PAUSED]
    showcase.produce(topic, [(0, None, b"{}", 0, []) for _ in range(7)])
    query = {"name": PAUSED}
    wait_until(lambda: f"{topic}-0: none of 7" in op.get(address, params=query).text, "the new records")
    form = {"place": f"{topic}-0", "to": "offset", "value": "5"}
    shown = op.post(address, params=query, data=form)
    assert "5 records will be skipped, and never be written" in shown.text
    assert "Offsets can only be changed while a connector is stopped" in shown.text
    assert 'name="confirmed"' not in shown.text
    op.post(LIST, data={"do": f"stop:{PAUSED}"})
    shown = op.post(address, params=query, data=form)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', shown.text))
    confirmed = {name: html.unescape(value) for name, value in hidden.items()}
    assert json.loads(confirmed["wanted"]) == {f"{topic}-0": 5}
    done = op.post(address, params=query, data=confirmed)
    assert "The offsets of 1 partition were changed." in done.text
    assert showcase.herder.offsets(PAUSED)["offsets"][0]["offset"] == {"kafka_offset": 5}
    event, who, extra = last_entry()
    assert (event, who, extra["connector"]) == ("connect.alter_offsets", "op", PAUSED)
    again = op.post(address, params=query, data=confirmed)
    assert (again.status_code, "has committed other offsets since" in again.text) == (409, True)
    op.post(LIST, data={"do": f"pause:{PAUSED}"})


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"to": "offset", "value": "soon"}, "The offset is 'soon', and must be a number"),
        ({"to": "offset", "value": "2026-11-20T08:00"}, "and must be a number"),
        ({"to": "time", "value": ""}, "The time is ''. Expected milliseconds since the epoch or ISO 8601"),
        ({"to": "offset", "value": "999999"}, "999999"),
        ({"to": "time", "value": "yesterday"}, "The time is 'yesterday'. Expected"),
        ({"to": "earliest", "place": "no-such-topic-0"}, "no-such-topic-0"),
        ({"confirmed": "yes", "wanted": "{", "before": "{}"}, "Start again from the page of the offsets."),
    ],
    ids=str,
)
def test_wrong_fields_of_the_offsets_form_are_explained(browser_of: BrowserOf, form: dict[str, str], told: str) -> None:
    op = browser_of("op")
    complete(op, LIST, HEALTHY)
    answer = op.post(f"{LIST}/offsets", params={"name": HEALTHY}, data=form)
    assert answer.status_code == 400
    assert told in html.unescape(answer.text)


def test_a_body_that_is_too_large_or_no_form_is_refused(browser_of: BrowserOf) -> None:
    op = browser_of("op")
    assert op.post(LIST, content=b"x" * 1_000_001).status_code == 413
    assert op.post(LIST, content=b"\xff\xfe").status_code == 400


# --- new connectors, and dead letters --------------------------------------------------------------------------------


def test_a_configuration_is_checked_key_by_key_planned_and_then_created(
    browser_of: BrowserOf, showcase: Showcase
) -> None:
    op, address = browser_of("op"), f"{LIST}/create?from=text"
    assert "Nothing is registered before you have seen the plan" in op.get(address).text
    config = {**showcase.config(LAGGING), "name": "typed", "flush.size": "many"}
    pasted = json.dumps({"name": "typed", "config": {k: v for k, v in config.items() if k != "name"}})
    wrong = op.post(address, data={"do": "create", "config": pasted})
    assert wrong.status_code == 400
    assert "Invalid value many for configuration flush.size" in html.unescape(wrong.text)
    assert re.search(r'<input [^>]*name="set:flush.size" value="many"[^>]* aria-invalid="true"', wrong.text)
    assert "typed" not in showcase.herder.names()
    right = op.post(address, data={"do": "check", "config": pasted, "set:flush.size": "50", "set:format.class": ""})
    assert (right.status_code, "Create typed" in right.text) == (400, False)  # a key that was emptied is gone
    form = {"do": "check", "config": pasted, "set:flush.size": "50"}
    wait_until(lambda: "would copy" in (shown := op.post(address, data=form).text) and "From" in shown, "the plan")
    untouched = {**form, "config": pasted.replace("many", "60"), "was:flush.size": "50"}
    assert '"flush.size": "60"' in html.unescape(op.post(address, data=untouched).text)  # the text was changed
    text = html.unescape(re.findall(r"<textarea[^>]*>(.*?)</textarea>", op.post(address, data=form).text, re.S)[0])
    assert json.loads(text) == {**config, "flush.size": "50"}
    done = op.post(address, data={"do": "create", "config": text})
    assert "typed was created." in done.text
    assert showcase.herder.config("typed")["flush.size"] == "50"
    event, _, extra = last_entry()
    assert (event, "flush.size" in extra["keys"], "50" in json.dumps(extra)) == (
        "connect.create_connector",
        True,
        False,
    )
    again = op.post(address, data={"do": "create", "config": text})
    assert (again.status_code, "Connector typed already exists" in again.text) == (409, True)
    assert "LocalSinkConnector" not in json.dumps(extra)  # an audit entry has keys, no values
    showcase.herder.delete("typed")
    op.post(LIST, data={"do": "resume", "name": HEALTHY})  # pages are told at once


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "The configuration"),
        ("name=x", "contains no connector type"),
        ("name=x\nconnector.class=NoSuchConnector", "Failed to find any class"),
        ("connector.class=LocalSinkConnector", "name"),
    ],
    ids=["no-json", "no-class", "unknown-class", "no-name"],
)
def test_a_configuration_that_cannot_be_registered_is_explained(browser_of: BrowserOf, text: str, told: str) -> None:
    answer = browser_of("op").post(f"{LIST}/create", data={"do": "check", "config": text})
    assert answer.status_code == 400
    assert told in html.unescape(answer.text)


def test_dead_letters_are_replayed_once_after_a_look(browser_of: BrowserOf, showcase: Showcase) -> None:
    op, query = browser_of("op"), {"name": FAILING}
    complete(op, LIST, FAILING)
    shown = op.get(f"{LIST}/replay", params=query)
    topic = showcase.topics[FAILING]
    assert f"4 letters of {topic}-dlq would go back to {topic}" in text_of(shown.text)
    assert "4 letters of" in text_of(op.get(f"{LIST}/replay", params=query).text)  # a look replays nothing
    done = op.post(f"{LIST}/replay", params=query)
    assert f"4 dead letters went back to {topic}." in done.text
    assert last_entry()[0] == "connect.replay_dead_letters"
    assert "There is nothing to replay" in op.get(f"{LIST}/replay", params=query).text
    refused = op.post(f"{LIST}/replay", params={"name": OF_DAG})
    assert refused.status_code in (400, 409), "its DAG says nothing of a dead letter queue, or is not there"


# --- Kafka is away ---------------------------------------------------------------------------------------------------


def test_pages_answer_although_no_broker_does(tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_connect.devstack.launching.process import free_ports
    from airflow_connect.ui.pages.app import create_app

    worker = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}", "group.id": "away"}
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", json.dumps({"conn_type": "connect_worker", "extra": worker}))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "away")
    browser = TestClient(create_app(), base_url=ORIGIN, headers={"Origin": ORIGIN}, cookies={"_token": tokens["op"]})
    paths = ["/away", "/away/cluster", "/away/connector?name=x", "/away/run?name=x&run=y", "/of?dag_id=d"]
    started = time.monotonic()
    for path in paths:
        answer = browser.get(path)
        assert answer.status_code == 200
        assert "Kafka is being asked." in answer.text or "Kafka does not answer." in answer.text
    assert time.monotonic() - started < 12  # Kafka's own timeout for one request is as long.


def test_without_an_installation_the_page_says_how_to_get_one(
    tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.ui.pages.app import create_app
    from airflow_connect.ui.web.dag_places import DagPlaces

    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "")
    monkeypatch.setattr(DagPlaces, "read", lambda places: {})
    browser = TestClient(create_app(), base_url=ORIGIN, cookies={"_token": tokens["viewer"]})
    answer = browser.get("/")
    assert answer.status_code == 200
    assert "No DAG of this Airflow has a connector yet" in answer.text and "worker_conn_ids" in answer.text
