"""Pages of a connector that fills tables of a lake, in Chromium: 40 tables, and a run that another one has finished."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from airflow_connect.runtime import crash_points
from tests.airflow.ui.conftest import CONN_ID, OpenPage
from tests.airflow.ui.test_in_a_browser import _WIDER, IMAGES
from tests.support.copies.iceberg import ICEBERG_SINK, sqlite_catalog
from tests.support.copies.showcase import Showcase
from tests.support.steps import Crashed, Steps

pytestmark = [pytest.mark.integration, pytest.mark.budget(25)]  # runs, and a browser that draws on a busy machine

OWN_CONN_ID = "connect_lake"
MANY, ONE = "orders-to-lake", "refunds-to-lake"
TABLES = [f"sales.orders_of_region_{n:02d}" for n in range(40)]


@pytest.fixture(scope="module")
def own(kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    """An installation of its own: a connector with 40 tables, and one whose run was killed and finished by the next."""
    from tests.support.kafka_data import TopicProducer, create_topic

    name = f"lake-{uuid.uuid4().hex[:8]}"
    topics = {connector: f"{name}-{connector}" for connector in (MANY, ONE)}
    for topic in topics.values():
        create_topic(kafka.bootstrap, topic, 2)
    folder = tmp_path_factory.mktemp("lake")
    made = Showcase(kafka.bootstrap, name, folder, TopicProducer(kafka.bootstrap), topics)
    run(made, MANY, ",".join(TABLES))
    run(made, ONE, "sales.refunds")
    with pytest.MonkeyPatch.context() as patch:
        steps = Steps(patch)
        steps.crash(crash_points.MANIFEST_WRITTEN)
        made.add(ONE, 30, partitions=2)
        with pytest.raises(Crashed):
            run(made, ONE, "sales.refunds")
    run(made, ONE, "sales.refunds")
    assert made.run(ONE, config(made, ONE, "sales.refunds")).status == "empty"
    with pytest.MonkeyPatch.context() as patch:
        connection = {"conn_type": "connect_worker", "extra": made.worker}
        patch.setenv(f"AIRFLOW_CONN_{OWN_CONN_ID.upper()}", json.dumps(connection))
        patch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, {OWN_CONN_ID}")
        yield made


def config(made: Showcase, connector: str, tables: str) -> dict[str, str | None]:
    keys = ("store.url", "format.class", "flush.size")
    known = {key: value for key, value in made.config(connector).items() if key not in keys}
    return {
        **known,
        "connector.class": ICEBERG_SINK,
        "iceberg.tables": tables,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.default-partition-by": "bucket(n, 2)",
        **{f"iceberg.catalog.{key}": value for key, value in sqlite_catalog(made.folder).items()},
    }


def run(made: Showcase, connector: str, tables: str) -> None:
    wanted = config(made, connector, tables)
    if connector not in made.runs:
        made.herder.create(connector, wanted)
    made.add(connector, 20, partitions=2)
    assert made.run(connector, wanted).status == "done"


def opened(open_page: OpenPage, place: str, width: int, scheme: str) -> Page:
    page = open_page("viewer", f"airflow-connect/{OWN_CONN_ID}/{place}", width, scheme)
    expect(page.get_by_role("heading", name="Tables")).to_be_visible(timeout=20_000)
    return page


def rows(page: Page) -> list[list[str]]:
    section = page.locator("section", has=page.get_by_role("heading", name="Tables"))
    return [row.split("\t") for row in section.locator("tbody tr").all_inner_texts()]


def check(page: Page, name: str, width: int) -> None:
    """No serious barrier, and nothing wider than the page."""
    serious = [p for p in Axe().run(page).response["violations"] if p["impact"] in ("serious", "critical")]
    assert {p["id"]: p["nodes"] for p in serious} == {}
    assert page.evaluate(_WIDER, width) == []
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"lake-{name}-{width}.png", full_page=True)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_pages_show_the_snapshot_of_each_of_40_tables(
    own: Showcase, open_page: OpenPage, scheme: str, width: int
) -> None:
    (report,) = own.runs[MANY]
    page = opened(open_page, f"run?name={MANY}&run={report.run_id}", width, scheme)
    expected = [
        [one.table, "main", one.snapshot_id, "20", str(one.files), str(one.partitions)] for one in report.tables
    ]
    assert [one.table for one in report.tables] == TABLES
    assert [[*row[:5], row[6]] for row in rows(page)] == expected
    expect(page.locator("details", has_text="was missing and was created")).to_have_count(1)
    check(page, f"run-{scheme}", width)
    page = opened(open_page, f"connector?name={MANY}", width, scheme)
    assert [[*row[:3], row[4], row[5], row[7]] for row in rows(page)] == expected
    check(page, f"connector-{scheme}", width)


def test_snapshot_of_a_run_that_another_one_has_finished_leads_to_its_run(own: Showcase, open_page: OpenPage) -> None:
    _, recovering, empty = own.runs[ONE]
    page = opened(open_page, f"run?name={ONE}&run={recovering.run_id}", 1280, "light")
    dead, last = recovering.tables
    assert [(row[2], row[3], row[-1]) for row in rows(page)] == [
        (dead.snapshot_id, "50", dead.run_id),
        (last.snapshot_id, "20", "this run"),
    ]
    check(page, "finished-light", 1280)
    page.get_by_role("link", name=dead.run_id).last.click()
    expect(page.get_by_role("heading", name=f"Run {dead.run_id}")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("heading", name="Tables")).to_be_visible(timeout=20_000)
    assert [row[2] for row in rows(page)] == [dead.snapshot_id]

    page = opened(open_page, f"connector?name={ONE}", 1280, "light")
    assert [(row[0], row[2], row[-1]) for row in rows(page)] == [("sales.refunds", last.snapshot_id, "3")]
    page = open_page("viewer", f"airflow-connect/{OWN_CONN_ID}/run?name={ONE}&run={empty.run_id}")
    expect(page.get_by_text("nothing to copy")).to_be_visible(timeout=20_000)
    assert page.get_by_role("heading", name="Tables").count() == 0
