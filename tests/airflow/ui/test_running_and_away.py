"""Pages while a run copies, before anything was set up, and after the broker has gone."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from starlette.testclient import TestClient

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.observe.inspecting.doctor import Check
from airflow_connect.runtime.reporting.redaction import Redactor
from airflow_connect.ui.pages.examining import checks_within
from tests.airflow.ui.conftest import BUSY_CONN_ID, CONN_ID, ORIGIN
from tests.airflow.ui.test_pages import BrowserOf, complete, text_of
from tests.support.copies.showcase import BUSY, FAILING, HEALTHY, LAGGING, OF_DAG, SECRET, BusyConnector, Showcase
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration
LIST = f"/airflow-connect/{CONN_ID}"
BUSY_LIST = f"/airflow-connect/{BUSY_CONN_ID}"


def test_lag_of_a_week_is_what_runs_have_measured(browser_of: BrowserOf, showcase: Showcase) -> None:
    browser = browser_of("viewer")
    page = complete(browser, LIST, HEALTHY)
    assert "To copy, as runs found it in 4 hours of the last 7 days: at most 140, in the hour of" in page
    page = complete(browser, f"{LIST}/connector", "Records to copy in each hour", name=HEALTHY)
    assert "140 to copy when the run began, 0 of these left" in page and "Now: 0 to copy" in page
    limited = showcase.runs[LAGGING][0]
    page = complete(browser, f"{LIST}/connector", "Records to copy", name=LAGGING, span="month")
    assert "30 to copy when the run began, 10 of these left" in page
    told = text_of(complete(browser, f"{LIST}/run", "Of these left", name=LAGGING, run=limited.run_id))
    assert "To copy when it began 30 Of these left 10" in told


def test_a_run_shows_how_far_it_is_and_then_its_end(browser_of: BrowserOf, busy: BusyConnector) -> None:
    browser = browser_of("viewer")
    page = complete(browser, f"{BUSY_LIST}/connector", "The run has begun to copy.", name=BUSY)
    assert "Copying now" in page
    busy.engine.report(0, 20)
    busy.engine.report(1, 7)
    page = complete(browser, f"{BUSY_LIST}/connector", "Copied 27 of 90 records", name=BUSY)
    assert 'data-every="2"' in page and f'data-say="{BUSY}: copy, 30 %"' in page
    run_id = page.partition("run=")[2].partition('"')[0]
    running = browser.get(f"{BUSY_LIST}/run", params={"name": BUSY, "run": run_id}).text
    told = text_of(running)
    assert "Where the time goes" in told and "task 1 7" in told
    assert "task 0, attempt 1: 20 records" in running
    page = complete(browser, BUSY_LIST, "Copying 30%")
    busy.engine.report(0, 43)
    complete(browser, f"{BUSY_LIST}/run", "Copied 50 of 90 records", name=BUSY, run=run_id)
    busy.finish()
    ended = complete(browser, f"{BUSY_LIST}/run", "Audit", name=BUSY, run=run_id)
    assert 'data-every="0"' in ended and "data-say" not in ended
    assert "To copy when it began 90 Of these left 0" in text_of(ended)
    page = complete(browser, f"{BUSY_LIST}/connector", "Up to date", name=BUSY)
    assert "Copying now" not in page


def test_the_doctor_says_what_it_found_without_secrets(browser_of: BrowserOf) -> None:
    browser = browser_of("viewer")
    page = complete(browser, f"{LIST}/doctor", "0 failed")
    assert "permissions on state topics" in page and "versions" in page
    # Once the checks are new, they are not asked for again and again.
    wait_until(lambda: 'data-every="0"' in browser.get(f"{LIST}/doctor").text, "the newest checks")
    page = complete(browser, f"{LIST}/doctor", f"{FAILING}: topics and group", name=FAILING)
    page = complete(browser, f"{LIST}/doctor", f"{HEALTHY}: topics and group", name=HEALTHY)
    assert SECRET not in page
    page = complete(browser, f"{LIST}/doctor", "is part of a DAG", name=OF_DAG)
    assert "airflow-connect doctor --deep" in page


def test_the_doctor_ends_in_time_and_hides_secrets() -> None:
    has_ended = threading.Event()

    def slow() -> Iterator[Check]:
        yield Check("first", f"It said {SECRET}.", f"Change {SECRET}.")
        assert has_ended.wait(30)
        yield Check("second", "Too late.")

    def broken() -> Iterator[Check]:
        yield Check("first", "Fine.")
        raise RuntimeError(SECRET)

    redact = Redactor([SECRET])
    first, last = checks_within(slow(), redact, 0.2)
    has_ended.set()
    assert (first.found, first.to_do) == ("It said [hidden].", "Change [hidden].")
    assert (last.did, last.is_ok) == ("time limit", False)
    assert 'after "first"' in last.found
    first, last = checks_within(broken(), redact, 10)
    assert (first.is_ok, last.is_ok, SECRET in last.found) == (True, False, False)


def test_a_connector_of_a_dag_says_what_is_not_known_and_where_it_is(browser_of: BrowserOf) -> None:
    page = complete(browser_of("viewer"), f"{LIST}/connector", "The plan itself is not known here", name=OF_DAG)
    run = "/dags/nightly/runs/manual__2026-11-23T01%3A00%3A00%2B00%3A00/tasks/copy/rendered_templates"
    assert f'href="{run}"' in page
    assert '<a data-airflow href="/dags/nightly">Pause, resume or trigger it there</a>' in page


# --- a broker of its own ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that a test may end."""
    with KafkaBroker.start() as own:
        yield own


def own_browser(tokens: dict[str, str], patch: pytest.MonkeyPatch, conn_id: str, worker: object) -> TestClient:
    """A browser of pages that know nothing yet, of one installation."""
    from airflow_connect.ui.pages.app import create_app

    patch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "connect_worker", "extra": worker}))
    patch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", conn_id)
    return TestClient(create_app(), base_url=ORIGIN, headers={"Origin": ORIGIN}, cookies={"_token": tokens["op"]})


def test_a_look_creates_no_topic_and_the_first_connector_does(
    broker: KafkaBroker, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def topics() -> set[str]:
        every = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics
        return {name for name in every if not name.startswith("__")}  # the doctor tries a transaction

    worker = {"bootstrap.servers": broker.bootstrap, "group.id": "unset"}
    worker |= {f"{kind}.storage.topic": f"unset-{kind}" for kind in ("config", "status", "offset", "runs")}
    worker |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "status", "offset", "runs")}
    worker |= dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
    browser, before = own_browser(tokens, monkeypatch, "unset", worker), topics()
    page = complete(browser, "/unset", "Nothing was set up in unset yet")
    assert "the first run creates them; this page does not" in text_of(page)
    for path in ("/unset/cluster", "/unset/create", "/of?dag_id=d"):
        assert browser.get(path).status_code == 200
    complete(browser, "/unset/doctor", "will be created by the first run that needs it")
    assert browser.get("/unset/connector?name=x").status_code == 404
    assert topics() == before
    config = {"name": "first", "connector.class": "LocalSinkConnector", "topics": "t", "store.url": f"file://{tmp_path}",
              "format.class": "JsonFormat", "flush.size": "1"}  # fmt: skip
    done = browser.post("/unset/create", data={"do": "create", "config": json.dumps(config)})
    assert "first was created." in done.text
    assert topics() - before == {"unset-config", "unset-status"}


@pytest.mark.budget(70)  # until a client gives a broker up
@pytest.mark.timeout(600)
def test_every_page_says_that_the_broker_has_gone_and_shows_what_was_known(
    broker: KafkaBroker, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    topic = "gone-lagging"
    create_topic(broker.bootstrap, topic, 2)
    made = Showcase(broker.bootstrap, "gone", tmp_path, TopicProducer(broker.bootstrap), {LAGGING: topic})
    config = made.config(LAGGING)
    made.herder.create(LAGGING, config)
    made.add(LAGGING, 30, partitions=2)
    run_id = made.run(LAGGING, config).run_id
    made.add(LAGGING, 12, partitions=2)
    browser = own_browser(tokens, monkeypatch, "gone", made.worker)
    name = f"name={LAGGING}"
    known = {
        "/gone": LAGGING,
        "/gone/cluster": topic,
        f"/gone/connector?{name}": "Records, at most 12",
        f"/gone/run?{name}&run={run_id}": "Audit",
        f"/gone/offsets?{name}": "New offset",
    }
    for path, wanted in known.items():
        complete_within(browser, path, wanted, 30)
    broker.kill()
    wait_until(lambda: "Kafka does not answer." in browser.get("/gone").text, "pages to notice", 150, every_s=0.5)
    for path, wanted in known.items():
        page = browser.get(path)
        told = text_of(page.text)
        assert page.status_code == 200
        assert "This page shows what was known" in told, path
        assert wanted in told, path
    page = browser.get(f"/gone/create?class={config['connector.class']}")
    assert (page.status_code, "New connector" in page.text) == (200, True)
    complete_within(browser, "/gone/doctor", "No Kafka broker of bootstrap.servers=", 150)
    for path in ("/gone/replay", "/gone/offsets"):
        refused = browser.post(path, params={"name": LAGGING}, data={"to": "earliest"})
        assert refused.status_code in (200, 400, 503), path
    refused = browser.post("/gone", data={"do": f"pause:{LAGGING}"})
    assert "Kafka" in html.unescape(refused.text)


def complete_within(browser: TestClient, path: str, wanted: str, seconds: float) -> None:
    """The page has these words after a while."""
    wait_until(lambda: wanted in text_of(browser.get(path).text), f"{wanted!r} on {path}", seconds, every_s=0.5)
