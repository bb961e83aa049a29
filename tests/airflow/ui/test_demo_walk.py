"""`airflow-connect demo --ui` in Chromium: the clicks that the terminal proposes, on the Airflow that it starts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from airflow_connect.cli.demo.airflow_ui import USER
from airflow_connect.cli.demo.dag_folder import TRIGGERED
from airflow_connect.cli.demo.scene import CLICKS, INVOICES, WRONG_AMOUNTS
from airflow_connect.cli.demo.ui import Running, running, what_to_click
from airflow_connect.cli.terminal import Terminal
from tests.support.chromium import chromium_browser

# An Airflow of its own, and its runs with Spark.
pytestmark = [pytest.mark.integration, pytest.mark.budget(120), pytest.mark.timeout(900)]

PATIENCE_MS = 150_000
RECORDS = 100
IMAGES = os.environ.get("AIRFLOW_CONNECT_SCREENSHOTS", "")
"""A folder, such as docs/images: the pages are saved there."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The demo, whose producer writes as it does beside a waiting terminal."""
    ending = threading.Event()

    def write(demo: Running) -> None:
        while not ending.wait(2):
            demo.traffic.write()

    with running(Terminal(), tmp_path_factory.mktemp("demo")) as found, ThreadPoolExecutor(1) as threads:
        producer = threads.submit(write, found)
        try:
            yield found
        finally:
            ending.set()
        producer.result()


@pytest.fixture
def page(demo: Running) -> Iterator[Page]:
    """Airflow after the login."""
    with chromium_browser() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.goto(demo.airflow.url)
        page.locator("input[name=username]").fill(USER)
        page.locator("input[name=password]").fill(demo.airflow.password())
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Browse").wait_for()
        yield page


def test_triggered_dag_copies_as_much_as_its_form_says(page: Page, demo: Running) -> None:
    assert TRIGGERED in "".join(map(str, what_to_click(demo)))
    page.goto(f"{demo.airflow.url}/dags/{TRIGGERED}")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_text("How much to copy").click()
    page.locator('input[name="element_run.max.records"]').fill(str(RECORDS))
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    page.wait_for_url("**/runs/manual__*")
    page.get_by_text("Triggering User").wait_for()
    page.get_by_text("Success", exact=True).first.wait_for()
    page.get_by_role("tab", name="Connectors").or_(page.get_by_role("link", name="Connectors")).first.click()
    page.wait_for_url("**/runs/manual__*/plugin/connectors-of-dag_run")
    inside = page.frame_locator("iframe").first
    row = inside.locator("tbody tr").filter(has_text="done")
    expect(row.locator("td").nth(1)).to_have_text(str(RECORDS))
    _keep(page, "demo-triggered")
    row.get_by_role("link").click()
    expect(inside.get_by_text("topics/meetups/").first).to_be_visible()


def test_run_now_copies_as_much_as_it_was_asked(page: Page, demo: Running) -> None:
    page.goto(f"{demo.airflow.url}/airflow-connect/")
    page.get_by_role("link", name=CLICKS, exact=True).click()
    page.get_by_text("Run now").click()
    page.get_by_label("At most this many records").fill(str(RECORDS))
    _keep(page, "demo-run-now")
    page.get_by_role("button", name=f"Run {CLICKS}").click()
    page.wait_for_url("**/run?*asked=1")
    expect(page.locator("dl.facts")).to_contain_text(f"Written{RECORDS} records")


def test_failed_connector_is_repaired_and_its_dead_letters_arrive(page: Page, demo: Running) -> None:
    page.get_by_role("button", name="Browse").click()
    page.get_by_text("Kafka Connect").first.click()
    inside = page.frame_locator("iframe").first
    inside.get_by_role("link", name=INVOICES).click()
    expect(inside.get_by_text("A file exists where a directory is needed").first).to_be_visible()
    _keep(page, "demo-failed")
    inside.get_by_role("link", name="Edit the configuration").click()
    config = inside.get_by_label("Configuration", exact=True)
    config.fill(json.dumps({**json.loads(config.input_value()), **demo.scene.repairs()}))
    inside.get_by_role("button", name="Check").click()
    inside.get_by_role("button", name=f"Save {INVOICES}").click()
    inside.get_by_role("link", name="Replay dead letters").wait_for()
    expect(inside.get_by_label("What is wrong")).to_have_count(0)
    inside.get_by_role("link", name="Replay dead letters").click()
    inside.get_by_role("button", name=f"Replay {WRONG_AMOUNTS} letters").click()
    expect(inside.get_by_text(f"{WRONG_AMOUNTS} dead letters went back to invoices.")).to_be_visible()
    _wait_for_copied_amounts(page, Path(demo.scene.repairs()["store.url"].removeprefix("file://")))


def _wait_for_copied_amounts(page: Page, files: Path) -> None:
    """Until the amounts that could not be cast are in files of the next run."""
    for _ in range(PATIENCE_MS // 1000):
        lines = [
            line for path in files.glob("topics/invoices*/*/invoices+*.json") for line in path.read_text().splitlines()
        ]
        amounts = [json.loads(line)["amount"] for line in lines]
        if sum("," in str(amount) for amount in amounts) == WRONG_AMOUNTS:
            return
        page.wait_for_timeout(1000)
    pytest.fail("The replayed records did not arrive.")


def _keep(page: Page, name: str) -> None:
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"{name}.png")
