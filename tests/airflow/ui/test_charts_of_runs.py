"""The page of a connector in Chromium: charts of failed records and of several tasks, and what a backup holds."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from playwright.sync_api import Page, expect

from airflow_connect.documents.run import RunReport
from airflow_connect.documents.run_detail import ReasonRow, RunDetail, TaskRow
from airflow_connect.documents.run_lag import RunLag
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import runs_topic
from tests.airflow.ui.conftest import CONN_ID, OpenPage
from tests.airflow.ui.test_in_a_browser import _WIDER, IMAGES
from tests.support.copies.showcase import Showcase

pytestmark = [pytest.mark.integration, pytest.mark.budget(25)]  # runs, and a browser that draws on a busy machine

OWN_CONN_ID = "connect_charts"
OFTEN, SELDOM, BACKUP = "payments", "refunds", "cluster-backup"
HOUR_MS = 3_600_000
RUNS = 13
REASONS = (
    ("VALUE_CONVERTER", "data.invalid", 31),
    ("TASK_PUT", "database.constraint", 12),
    ("TASK_PUT", "data.null_value", 4),
)


@pytest.fixture(scope="module")
def own(kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    """An installation of its own with the history of one connector, and with another one that has run once."""
    from tests.support.kafka_data import TopicProducer, create_topic

    name = f"charts-{uuid.uuid4().hex[:8]}"
    topics = {connector: f"{name}-{connector}" for connector in (OFTEN, SELDOM, BACKUP)}
    for connector, topic in topics.items():
        create_topic(kafka.bootstrap, topic, 2 if connector == BACKUP else 1)
    folder = tmp_path_factory.mktemp("charts")
    made = Showcase(kafka.bootstrap, name, folder, TopicProducer(kafka.bootstrap), topics)
    for connector in topics:
        made.herder.create(connector, made.config(connector))
    now_ms = time.time_ns() // 1_000_000
    made.produce(topics[OFTEN], [(0, None, b"{}", now_ms - 2 * HOUR_MS, [])] * 40)
    made.add(SELDOM, 30, partitions=1)
    assert made.run(SELDOM, made.config(SELDOM)).status == "done"
    back_up_with_a_gap(made)
    settings = made.settings.worker
    topic = runs_topic.find(admin_client(made.settings.admin), settings.runs_topic)
    assert topic is not None
    place = topic.partition_of(OFTEN)
    for number in range(RUNS):
        report = report_of(number, now_ms - (RUNS - number) * 12 * HOUR_MS)
        document = {"v": 1, **report.to_json()}
        found = runs_topic.encode_document("run", OFTEN, document, report.run_id)
        made.produce(topic.name, [(place, key, value, now_ms, []) for key, value in found])
    with pytest.MonkeyPatch.context() as patch:
        connection = {"conn_type": "connect_worker", "extra": made.worker}
        patch.setenv(f"AIRFLOW_CONN_{OWN_CONN_ID.upper()}", json.dumps(connection))
        patch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, {OWN_CONN_ID}")
        yield made


def back_up_with_a_gap(made: Showcase) -> None:
    """Two runs of a backup; between them, somebody sets the offset of partition 1 forward."""
    config = made.config(BACKUP, store_kafka_records="true", format_class="ParquetFormat")
    made.herder.put_config(BACKUP, config)
    made.add(BACKUP, 30, partitions=2)
    assert made.run(BACKUP, config).status == "done"
    made.add(BACKUP, 50, partitions=2)
    group, place = f"connect-{BACKUP}", TopicPartition(made.topics[BACKUP], 1, 25)
    admin = admin_client(made.settings.admin)
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])])[group].result(10)
    assert made.run(BACKUP, config).status == "done"


def report_of(number: int, at_ms: int) -> RunReport:
    """A run: records wait longer from run to run, one of its tasks becomes slower, and some records fail."""
    records = 1_000_000 + 173_000 * (number * 7 % 5)
    took_ms = [60_000 + 700 * task for task in range(4)] + [62_000 + 9_000 * number]
    tasks = tuple(TaskRow(n, 0, "host", at_ms, at_ms + ms, records // 5, 0) for n, ms in enumerate(took_ms))
    reasons = tuple(ReasonRow(stage, error, most * number // RUNS) for stage, error, most in REASONS)
    dead = sum(row.records for row in reasons)
    lag = RunLag(records + dead, 0, at_ms, at_ms - HOUR_MS * (2 + number % 3 * number // 4))
    phases = {"plan": 900, "copy": max(took_ms), "publish": 4_000, "commit": 1_200}
    return RunReport(
        OFTEN, f"202611{number:02d}T010203-000000", "done", at_ms, at_ms + sum(phases.values()) + 6_000,
        records=records, dead_lettered=dead, files=12, size_bytes=records * 87, phases_ms=phases, lag=lag,
        detail=RunDetail((), tasks, (), 1, "", reasons),
    )  # fmt: skip


def opened(open_page: OpenPage, connector: str, width: int = 1280, scheme: str = "light") -> Page:
    page = open_page("viewer", f"airflow-connect/{OWN_CONN_ID}/connector?name={connector}", width, scheme)
    expect(page.locator("#live")).to_contain_text("Slowest task" if connector == OFTEN else "Duration", timeout=20_000)
    return page


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_charts_of_age_reasons_and_skew_have_no_barrier_and_fit(
    own: Showcase, open_page: OpenPage, scheme: str, width: int
) -> None:
    page = opened(open_page, OFTEN, width, scheme)
    live = page.locator("#live")
    expect(live).to_contain_text("Oldest of these", timeout=20_000)
    age = page.locator("figure", has_text="Age of the oldest record to copy")
    assert age.locator("circle").count() == RUNS + 1
    reasons = page.locator("figure", has_text="Failed records of each run by reason")
    legend = reasons.locator("figcaption").inner_text()
    assert "value converter data.invalid" in legend and "task put database.constraint" in legend
    skew = page.locator("figure", has_text="Slowest task, as a multiple of the median task")
    assert skew.locator("circle").count() == RUNS
    page.get_by_text("Failed records by reason, as a table").click()
    expect(page.locator("details[open]")).to_contain_text("value converter")
    reasons.locator("a").last.hover()
    expect(page.locator(".tip")).to_contain_text(
        "failed records: 28 value converter data.invalid, 11 task put database.constraint, 3 task put"
    )
    serious = [p for p in Axe().run(page).response["violations"] if p["impact"] in ("serious", "critical")]
    assert {p["id"]: p["nodes"] for p in serious} == {}
    assert page.evaluate(_WIDER, width) == []
    if IMAGES:
        page.mouse.move(0, 0)
        page.locator(".plots").screenshot(path=Path(IMAGES) / f"pages-charts-{scheme}-{width}.png")
        page.screenshot(path=Path(IMAGES) / f"charts-all-{scheme}-{width}.png", full_page=True)


def test_page_of_a_backup_shows_offsets_and_gaps(own: Showcase, open_page: OpenPage) -> None:
    page = opened(open_page, BACKUP)
    section = page.locator("section", has=page.get_by_role("heading", name="What the backup holds"))
    rows = section.locator("tbody tr").all_inner_texts()
    topic = own.topics[BACKUP]
    assert [row.split("\t") for row in rows] == [
        [f"{topic}-1", "0", "40", "1 gap of 10 offsets: 15 to 24", "0"],
        [f"{topic}-0", "0", "40", "none", "0"],
    ]
    assert page.evaluate(_WIDER, 1280) == []
    if IMAGES:
        section.screenshot(path=Path(IMAGES) / "pages-backup-light-1280.png")
    seldom = opened(open_page, SELDOM)
    assert seldom.get_by_role("heading", name="What the backup holds").count() == 0


def test_a_connector_with_one_run_has_no_empty_chart(own: Showcase, open_page: OpenPage) -> None:
    page = opened(open_page, SELDOM)
    captions = page.locator("figcaption").all_inner_texts()
    assert "Failed records" not in str(captions)
    for chart in page.locator("svg.over-time").all():
        assert chart.locator("rect.bar, circle").count() > 0
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / "charts-one-run.png", full_page=True)
