"""A new connector in five steps: chosen, filled in, tried, looked at, planned; then registered, or taken as a DAG."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from airflow_connect.api.config import plugins
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.ui.pages import gallery
from tests.airflow.ui.conftest import CONN_ID, OpenPage
from tests.support.copies.showcase import HEALTHY, LAGGING, SECRET, Showcase
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.processes.forked_worker import free_port
from tests.support.servers.rest import worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

BrowserOf = Callable[[str], TestClient]
LIST = f"/airflow-connect/{CONN_ID}"
CREATE = f"{LIST}/create"
IMAGES = os.environ.get("AIRFLOW_CONNECT_SCREENSHOTS", "")
S3_CLASS = "io.confluent.connect.s3.S3SinkConnector"
SECRET_KEY = "aws.secret.access.key"
RECORDS = 30


def text_of(page: str) -> str:
    """The words of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def s3_config(s3: S3Server, bucket: str, topic: str) -> dict[str, str]:
    return {
        "name": f"{topic}-to-s3",
        "connector.class": S3_CLASS,
        "topics": topic,
        "s3.bucket.name": bucket,
        "s3.region": s3.region,
        "store.url": s3.endpoint_url,
        "aws.access.key.id": s3.access_key,
        SECRET_KEY: s3.secret_key,
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "10",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }


@pytest.fixture
def topic(kafka: Any, unique_name: str) -> str:
    """A topic with 30 records of JSON in two partitions."""
    create_topic(kafka.bootstrap, unique_name, 2)
    producer = TopicProducer(kafka.bootstrap)
    producer(unique_name, [(n % 2, b"key-%d" % n, b'{"n":%d,"card":"1234"}' % n, 1_000, []) for n in range(RECORDS)])
    producer.close()
    return unique_name


@pytest.fixture
def sealed(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A connection with the secret key of the S3 server."""
    aws = {"conn_type": "generic", "login": s3.access_key, "password": s3.secret_key}
    monkeypatch.setenv("AIRFLOW_CONN_PAGES_S3", json.dumps(aws))
    return "pages_s3"


def ask(browser: TestClient, config: dict[str, str], do: str, **more: str) -> str:
    return browser.post(CREATE, data={"do": do, "config": json.dumps(config), **more}).text


# --- choose ----------------------------------------------------------------------------------------------------------


def test_the_gallery_has_a_card_for_each_class_of_this_package_with_its_guarantee_and_its_page() -> None:
    found = {card.connector_class: card for card in gallery.cards()}
    classes: dict[Any, list[str]] = {}
    for name in plugins.built_in(plugins.PluginKind.CONNECTOR):
        classes.setdefault(plugins.load_class(plugins.PluginKind.CONNECTOR, name), []).append(name)
    docs = Path(__file__).parents[3] / "docs/connectors"
    for plugin, names in classes.items():
        (name,) = (name for name in names if name in found)  # One of several names of a class.
        card = found[name]
        assert (docs / card.page.replace(".html", ".md")).is_file(), name
        delivery = getattr(plugin, "delivery", None)
        assert card.kind == ("source" if delivery is None else "sink"), name
        if delivery is not None:
            assert card.guarantee.startswith(gallery._GUARANTEES[delivery]), name


def test_entry_points_have_cards_and_one_that_cannot_be_loaded_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"good": "airflow_connect.connectors.files.local.connector:LocalSinkConnector", "gone": "no_such.module:C"}
    monkeypatch.setattr(plugins, "_registered", lambda kind: names)
    monkeypatch.setattr(plugins, "entry_point_names", lambda kind: sorted(names))
    gallery._python_cards.cache_clear()
    found = {card.connector_class: card for card in gallery.cards()}
    gallery._python_cards.cache_clear()
    assert (found["good"].kind, found["good"].guarantee, found["good"].problem) == ("sink", "Exactly once", "")
    assert "cannot be loaded from no_such.module:C" in found["gone"].problem


def test_the_gallery_is_searched_and_leads_to_the_form_of_a_class(browser_of: BrowserOf) -> None:
    op = browser_of("op")
    everything, some = op.get(CREATE).text, op.get(CREATE, params={"q": "database sink"}).text
    assert "Mirror source" in everything and "From a JSON text" in everything
    assert "1 connector with" in text_of(some) and "Database sink (JDBC)" in some and "Mirror source" not in some
    form = op.get(CREATE, params={"class": S3_CLASS}).text
    assert 'data-key="s3.bucket.name"' in form and 'aria-invalid="true"' not in form  # nothing was typed yet
    first = form.partition("</fieldset>")[0]
    assert 'data-key="topics"' in first and 'data-key="s3.part.size"' not in first
    assert "3. Test access" in form and "5. Plan of the first run" in form


def test_a_link_cannot_have_a_module_imported(browser_of: BrowserOf, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "never_of_the_gallery.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    page = browser_of("op").get(CREATE, params={"class": "never_of_the_gallery:C"})
    assert (page.status_code, "never_of_the_gallery:C" in page.text, "imported" in page.text) == (200, True, False)


@pytest.mark.parametrize("role", ["viewer", "user"])
def test_nobody_else_sees_or_opens_the_steps(browser_of: BrowserOf, role: str) -> None:
    browser = browser_of(role)
    assert "New connector" not in browser.get(LIST).text
    assert browser.get(CREATE).status_code == 403
    for do in ("test", "records", "plan", "dag"):
        assert browser.post(CREATE, data={"do": do, "config": "{}"}).status_code == 403


# --- fill in ---------------------------------------------------------------------------------------------------------


def test_a_secret_can_be_a_reference_to_a_connection_that_the_user_may_see(
    browser_of: BrowserOf, s3: S3Server, topic: str, unique_name: str
) -> None:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    conn_id = unique_name.replace("-", "_")
    with create_session() as session:
        session.add(Connection(conn_id=conn_id, conn_type="generic", password=SECRET))
    op, config = browser_of("op"), s3_config(s3, "any", topic)
    config.pop(SECRET_KEY)
    form = op.get(CREATE, params={"class": S3_CLASS}).text
    reference = f"${{airflow:{conn_id}:password}}"
    assert f'<select name="from:{SECRET_KEY}"' in form and f'value="{reference}"' in form
    assert SECRET not in form
    chosen = ask(op, config, "check", **{f"from:{SECRET_KEY}": reference})
    assert json.loads(html.unescape(re.findall(r"<textarea[^>]*>(.*?)</textarea>", chosen, re.S)[0]))[SECRET_KEY] == (
        reference
    )
    assert SECRET not in chosen
    with create_session() as session:
        session.delete(session.query(Connection).filter_by(conn_id=conn_id).one())


def test_a_connector_with_a_reference_is_created_where_the_worker_knows_airflows_connections(
    browser_of: BrowserOf,
    kafka: Any,
    s3: S3Server,
    bucket: str,
    topic: str,
    sealed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = "airflow_connect.airflow.config_provider:AirflowConfigProvider"
    knows = {"config.providers": "airflow", "config.providers.airflow.class": provider}
    worker = {"conn_type": "connect_worker", "extra": worker_of(kafka.bootstrap, topic) | knows}
    monkeypatch.setenv("AIRFLOW_CONN_CONNECT_KNOWS", json.dumps(worker))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, connect_knows")
    reference = f"${{airflow:{sealed}:password}}"
    config, address = {**s3_config(s3, bucket, topic), SECRET_KEY: reference}, CREATE.replace(CONN_ID, "connect_knows")
    op = browser_of("op")
    planned = op.post(address, data={"do": "plan", "config": json.dumps(config)}).text
    assert f"Create {config['name']}" in planned and "It cannot be created here" not in planned
    done = op.post(address, data={"do": "create", "config": json.dumps(config)})
    assert f"{config['name']} was created." in done.text
    assert s3.secret_key not in done.text


def test_a_reference_to_a_connection_that_does_not_exist_is_named(
    browser_of: BrowserOf, s3: S3Server, topic: str
) -> None:
    config = {**s3_config(s3, "any", topic), SECRET_KEY: "${airflow:no_such_connection:password}"}
    answer = browser_of("op").post(CREATE, data={"do": "test", "config": json.dumps(config)})
    assert answer.status_code == 400
    assert SECRET_KEY in text_of(answer.text) and "no_such_connection" in text_of(answer.text)
    assert "✓ passed" not in answer.text


def test_a_form_that_was_left_empty_is_not_tried(browser_of: BrowserOf) -> None:
    answer = browser_of("op").post(CREATE, data={"do": "test", "set:connector.class": S3_CLASS})
    assert answer.status_code == 400
    assert re.search(r'data-key="s3.bucket.name" class="wrong"', answer.text)
    assert "✓ passed" not in answer.text


# --- try, look, plan -------------------------------------------------------------------------------------------------


def test_access_records_and_plan_of_an_s3_sink(
    browser_of: BrowserOf, s3: S3Server, bucket: str, topic: str, sealed: str, showcase: Showcase
) -> None:
    op = browser_of("op")
    config = {**s3_config(s3, bucket, topic), SECRET_KEY: f"${{airflow:{sealed}:password}}"}
    hide = "org.apache.kafka.connect.transforms.ReplaceField$Value"
    config |= {"transforms": "hide", "transforms.hide.type": hide, "transforms.hide.exclude": "card"}
    tried = text_of(ask(op, config, "test"))
    assert ", 0 failed" in tried and "an upload was started and aborted" in tried and s3.secret_key not in tried
    looked = ask(op, config, "records", shown="test")
    assert "an upload was started" in looked  # what was found before stays
    assert "10 records, 0 would fail" in text_of(looked)
    assert html.escape('{"n":0,"card":"1234"}', quote=True).replace("&quot;", "&#34;") in looked
    assert 'key-0: {"n": 0}' in html.unescape(looked)
    planned = text_of(ask(op, config, "plan"))
    assert "Records, at most 30" in planned and "Files, at least 4" in planned and "Bytes in Kafka about" in planned
    assert f"s3://{bucket}/topics/{topic}/partition=0/{topic}+0+0000000000.json" in planned
    assert f"partition=1/{topic}+1+0000000000.json" in planned
    assert "Time: not estimated, because no connector of this class has run" in planned
    assert f"Create {config['name']}" not in planned  # the worker of the tests does not know Airflow's connections
    assert "It cannot be created here, but a DAG can run it" in planned
    assert s3.client().list_objects_v2(Bucket=bucket).get("Contents") is None
    assert config["name"] not in showcase.herder.names()


def test_a_time_is_estimated_from_runs_of_the_same_class(browser_of: BrowserOf, showcase: Showcase) -> None:
    op, config = browser_of("op"), {**showcase.config(LAGGING), "name": "estimated"}
    wait_until(lambda: "Copying about" in text_of(ask(op, config, "plan")), "an estimate")
    planned = text_of(ask(op, config, "plan"))
    assert re.search(r"Time: at the speed of the last runs of \S+, which has the same class", planned)
    tried = text_of(ask(op, config, "test"))
    assert "estimated: directory" in tried and "a file was created, renamed and deleted" in tried


def test_what_cannot_work_is_told_at_its_step(browser_of: BrowserOf, s3: S3Server, bucket: str, topic: str) -> None:
    op, config = browser_of("op"), s3_config(s3, bucket, topic)
    wrong = text_of(ask(op, {**config, "s3.bucket.name": f"{bucket}-missing"}, "test"))
    assert re.search(r": bucket ✗ failed", wrong) and f"{bucket}-missing" in wrong
    missing = {**config, "topics": f"{topic}-missing"}
    tried = text_of(ask(op, missing, "test"))
    assert re.search(r": topics and group ✗ failed", tried) and f"{topic}-missing" in tried
    assert f"{topic}-missing" in text_of(ask(op, missing, "records")).partition("4. Look at records")[2]
    broken = {**config, "value.converter.schemas.enable": "true"}
    looked = text_of(ask(op, broken, "records"))
    assert "10 records, 10 would fail" in looked and "schemas.enable" in looked.partition("10 would fail")[2]


def test_a_record_that_the_partitioner_refuses_would_fail(
    browser_of: BrowserOf, s3: S3Server, bucket: str, topic: str
) -> None:
    by_field = {"partitioner.class": "FieldPartitioner", "partition.field.name": "nothing"}
    looked = text_of(ask(browser_of("op"), {**s3_config(s3, bucket, topic), **by_field}, "records"))
    assert "10 would fail" in looked and "FieldPartitioner needs a schema" in looked.partition("sink: ")[2]


def test_records_that_are_null_or_dropped_are_told_apart(
    browser_of: BrowserOf, showcase: Showcase, make_topic: Any, produce: Any
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", None, 1_000, []), (0, b"k", b'{"n":1}', 1_000, []), (0, b"k", b"\xff{", 1_000, [])])
    config = {**showcase.config(LAGGING), "name": "mixed", "topics": topic, "behavior.on.null.values": "fail"}
    looked = text_of(ask(browser_of("op"), config, "records"))
    assert "3 records, 2 would fail" in looked
    assert "its value is null, and behavior.on.null.values=fail" in looked
    drop = {"transforms": "drop", "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter"}
    dropped = text_of(ask(browser_of("op"), {**config, **drop}, "records"))
    assert dropped.count("dropped by a transformation") == 2  # the third cannot be decoded
    backup = {**config, "store.kafka.records": "true", "format.class": "ParquetFormat"}
    backup = {key: value for key, value in backup.items() if not key.startswith(("key.con", "value.con"))}
    assert "3 records, 0 would fail" in text_of(ask(browser_of("op"), backup, "records")), "it keeps bytes"


def test_a_database_that_does_not_answer_and_the_records_of_a_source(browser_of: BrowserOf) -> None:
    config = {
        "name": "unreachable",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": f"jdbc:postgresql://127.0.0.1:{free_port()}/db",
        "connection.user": "me",
        "connection.password": SECRET,
        "connection.attempts": "1",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "db-",
    }
    tried = text_of(ask(browser_of("op"), config, "test"))
    assert re.search(r"unreachable: database ✗ failed", tried) and "127.0.0.1" in tried
    assert "Records of a source are not in Kafka before it runs" in tried


# --- as a DAG --------------------------------------------------------------------------------------------------------


def files_of(page: str) -> dict[str, str]:
    """Name and text of both files."""
    return {
        name: html.unescape(text)
        for name, text in re.findall(r'<pre [^>]*aria-label="([^"]+)">(.*?)</pre>', page, re.S)
    }


def test_the_dag_that_is_taken_runs_and_holds_no_secret(
    browser_of: BrowserOf,
    kafka: Any,
    s3: S3Server,
    bucket: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_spark: Callable[[], None],
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    from tests.support.kept_dags import forget_dag, keep_dag

    # An installation of its own: the run would be in the list that other tests count.
    worker = {"conn_type": "connect_worker", "extra": worker_of(kafka.bootstrap, topic)}
    monkeypatch.setenv("AIRFLOW_CONN_CONNECT_OF_DAG", json.dumps(worker))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, connect_of_dag")
    config = s3_config(s3, bucket, topic)
    address = CREATE.replace(CONN_ID, "connect_of_dag")
    page = browser_of("op").post(address, data={"do": "dag", "config": json.dumps(config)}).text
    files = files_of(page)
    slug = config["name"].replace("-", "_")
    assert set(files) == {f"{slug}.py", f"{slug}.json"}
    assert json.loads(files[f"{slug}.json"]) == {
        **config,
        "aws.access.key.id": f"${{airflow:{slug}:login}}",
        SECRET_KEY: f"${{airflow:{slug}:password}}",
    }
    assert f"{slug} : login is the value of aws.access.key.id: password is the value of {SECRET_KEY}" in text_of(page)
    assert s3.secret_key not in "".join(files.values())
    assert 'worker_conn_id="connect_of_dag"' in files[f"{slug}.py"]
    assert all(f'download="{name}"' in page for name in files)

    secret = {"conn_type": "generic", "login": s3.access_key, "password": s3.secret_key}
    monkeypatch.setenv(f"AIRFLOW_CONN_{slug.upper()}", json.dumps(secret))
    (tmp_path / f"{slug}.json").write_text(files[f"{slug}.json"])
    keep_dag(tmp_path, files[f"{slug}.py"])
    without_spark()
    (dag,) = DagBag(str(tmp_path)).dags.values()
    dag.get_task("copy").retries = 0
    assert dag.test(logical_date=None).state == "success"
    client = s3.client()
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
    lines = [line for key in keys for line in client.get_object(Bucket=bucket, Key=key)["Body"].read().splitlines()]
    assert sorted(json.loads(line)["n"] for line in lines) == list(range(RECORDS))
    forget_dag(slug)


@pytest.mark.parametrize("name", ['odd "name"\\', "a-b.c", "1st"])
def test_a_dag_of_any_name_can_be_read(browser_of: BrowserOf, showcase: Showcase, tmp_path: Path, name: str) -> None:
    from airflow.dag_processing.dagbag import DagBag

    files = files_of(ask(browser_of("op"), {**showcase.config(LAGGING), "name": name}, "dag"))
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    bag = DagBag(str(tmp_path))
    assert bag.import_errors == {}
    assert len(bag.dags) == 1


# --- in a browser ----------------------------------------------------------------------------------------------------


def saved(page: Page, name: str, *, is_full: bool = False) -> None:
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"{name}.png", full_page=is_full)


def barriers(page: Page, width: int) -> list[Any]:
    problems = Axe().run(page).response["violations"]
    wide = page.evaluate("document.documentElement.scrollWidth")
    found = [(p["id"], p["nodes"]) for p in problems if p["impact"] in ("serious", "critical")]
    return [*found, *([f"{wide} wide"] if wide > width else [])]


@pytest.mark.budget(40)  # Chromium on a busy machine, five steps
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_a_person_walks_through_all_steps(
    open_page: OpenPage,
    browser_of: BrowserOf,
    showcase: Showcase,
    s3: S3Server,
    bucket: str,
    topic: str,
    scheme: str,
    width: int,
) -> None:
    page = open_page("op", CREATE.lstrip("/"), width, scheme)
    mark = f"{scheme}-{width}"
    assert barriers(page, width) == []
    saved(page, f"pages-new-{mark}")
    page.get_by_role("searchbox").fill("S3")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Choose S3 sink").click()
    config = s3_config(s3, bucket, topic)
    for group in page.locator("details.group > summary").all():
        group.click()
    for key, value in sorted(config.items(), key=lambda item: item[0] == "value.converter.schemas.enable"):
        if key == "value.converter.schemas.enable":  # The field comes with the converter.
            expect(page.locator(f'[name="set:{key}"]')).to_be_attached(timeout=20_000)
            page.locator("details[data-group='Of value.converter'] > summary").click()
        field = page.locator(f'[name="set:{key}"]')
        if field.evaluate("element => element.tagName") == "SELECT":
            field.select_option(value)
        elif key != "connector.class":
            field.fill(value)
    expect(page.get_by_text("There is no mistake")).to_be_visible(timeout=20_000)
    for group in page.locator("details.group[open] > summary").all()[::-1]:
        group.click()
    page.get_by_role("button", name="Test access").click()
    expect(page.locator("#steps")).to_contain_text(", 0 failed", timeout=60_000)
    expect(page.get_by_role("button", name="Test again")).to_be_focused()
    page.get_by_role("button", name="Look at records").click()
    expect(page.locator("#steps")).to_contain_text("10 records, 0 would fail", timeout=30_000)
    page.get_by_role("button", name="Show what a run would copy").click()
    expect(page.locator("#steps")).to_contain_text("Files, at least", timeout=30_000)
    if IMAGES:
        page.locator("#steps").screenshot(path=Path(IMAGES) / f"pages-new-steps-{mark}.png")
    page.get_by_role("button", name="Take it as a DAG").click()
    expect(page.get_by_role("region", name="As a DAG")).to_contain_text("ConnectorOperator")
    assert barriers(page, width) == []
    saved(page, f"pages-new-whole-{mark}", is_full=True)
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile(r"Download .*\.json")).click()
    assert json.loads(Path(download.value.path()).read_text())["topics"] == topic
    if (scheme, width) != ("light", 1280):
        return
    page.get_by_role("button", name=f"Create {config['name']}").click()
    expect(page.get_by_role("status").first).to_contain_text(f"{config['name']} was created.")
    assert showcase.herder.config(config["name"]) == config
    showcase.herder.delete(config["name"])
    browser_of("op").post(LIST, data={"do": "resume", "name": HEALTHY})  # pages are told at once


def test_the_steps_work_without_a_script(browser_of: BrowserOf, showcase: Showcase) -> None:
    op = browser_of("op")
    config = {**showcase.config(HEALTHY), "name": "by-hand"}
    page = ask(op, config, "test")
    assert ", 0 failed" in text_of(page)  # the answer waits for the checks
    assert 'name="shown" value="test"' in page
    assert "10 records" in text_of(ask(op, config, "records", shown="test"))
