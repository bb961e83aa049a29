"""The pages in Chromium, inside Airflow's own UI: clicks, theme, keyboard, phone width, accessibility."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.airflow.ui.conftest import BUSY_CONN_ID, CONN_ID, OpenPage
from tests.support.copies.showcase import (
    BUSY,
    FAILING,
    HEALTHY,
    LAGGING,
    NEW,
    OF_DAG,
    PAUSED,
    SECRET,
    BusyConnector,
    Showcase,
)

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]  # a browser draws Airflow's UI on a busy machine

IMAGES = os.environ.get("AIRFLOW_CONNECT_SCREENSHOTS", "")
"""A folder, such as docs/images: the pages are saved there."""
LIST = f"airflow-connect/{CONN_ID}"
_WIDER = """(width) => document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > width).map((element) => element.outerHTML)"""
_HAS_CELL = """(text) => { refresh();
    return [...document.querySelectorAll("td[data-label='To copy']")].some((cell) => cell.innerText === text); }"""


def saved(page: Page, name: str) -> None:
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"{name}.png", full_page=True)


def test_a_person_finds_a_failure_in_airflows_menu_and_repairs_it(open_page: OpenPage, showcase: Showcase) -> None:
    outside = open_page("op", "plugin/kafka-connect")
    inside = outside.frame_locator("iframe")
    first = inside.locator("tbody tr").first
    expect(first).to_contain_text("No space left on device")
    saved(outside, "pages-in-airflow")
    first.get_by_role("link", name=FAILING).click()
    expect(inside.get_by_role("heading", name=FAILING)).to_be_visible()
    assert f"connector?name={FAILING}" in outside.url  # the address can be sent to somebody
    inside.get_by_role("button", name=f"Restart {FAILING}").click()
    expect(inside.get_by_role("status").first).to_have_text(f"{FAILING} was restarted.")
    showcase.ended(FAILING, "The directory /mnt/invoices cannot be written: No space left on device. Free some space.")


def test_a_link_leaves_the_frame_for_the_dag(open_page: OpenPage) -> None:
    outside = open_page("viewer", "plugin/kafka-connect")
    inside = outside.frame_locator("iframe")
    inside.get_by_role("link", name=OF_DAG).click()
    inside.get_by_role("link", name="DAG nightly").click()
    outside.wait_for_url("**/dags/nightly")


def test_the_theme_of_airflow_is_followed(open_page: OpenPage) -> None:
    page = open_page("viewer", LIST, scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    dark = page.evaluate(background)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(17, 20, 24)")
    page.evaluate("localStorage.setItem('theme', 'system')")
    page.reload()
    assert page.evaluate(background) == light


def test_numbers_change_without_a_reload_unless_somebody_is_choosing(open_page: OpenPage, showcase: Showcase) -> None:
    page = open_page("user", LIST)
    row = page.locator("tr", has=page.get_by_role("link", name=NEW, exact=True))
    expect(row.locator("td[data-label='To copy']")).to_have_text("0")
    showcase.add(NEW, 15)
    page.wait_for_function(_HAS_CELL, arg="15", polling=200)
    expect(row.locator("td[data-label='To copy']")).to_have_text("15")
    page.get_by_role("checkbox", name=f"Choose {HEALTHY}").check()
    page.evaluate("() => document.querySelector('h1').textContent = 'untouched'")
    page.evaluate("() => refresh()")
    expect(page.locator("h1")).to_have_text("untouched")


def test_a_double_click_starts_one_run(open_page: OpenPage, showcase: Showcase) -> None:
    page, held, before = open_page("op", LIST), list[Route](), len(showcase.restarts())

    def hold(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
        else:
            held.append(route)

    page.route(f"**/{LIST}", hold)
    button = page.get_by_role("button", name=f"Run now {HEALTHY}", exact=True)
    place = button.bounding_box()
    assert place is not None
    with page.expect_request(lambda request: request.method == "POST"):
        page.mouse.click(place["x"] + 5, place["y"] + 5)
    page.mouse.click(place["x"] + 5, place["y"] + 5)  # before the first answer
    held[-1].continue_()
    expect(page.get_by_role("status").first).to_have_text("Runs of 1 of 1 connectors were started.")
    # Loaded again, or sent to somebody, the page does not tell this once more.
    expect(page).to_have_url(re.compile(f"{re.escape(LIST)}$"))
    assert len(held) == 1
    assert len(showcase.restarts()) == before + 1


def test_a_page_that_cannot_be_read_again_says_since_when_it_is_old(open_page: OpenPage) -> None:
    page = open_page("viewer", LIST)
    old = page.locator("#old")
    page.route(f"**/{LIST}", lambda route: route.abort())
    page.evaluate("() => refresh()")
    expect(old).to_contain_text(re.compile(r"known at [-0-9]+ [:0-9]+ UTC, and cannot be read again. Airflow does not"))
    page.unroute_all()
    page.evaluate("() => refresh()")
    expect(old).to_have_count(0)
    page.context.clear_cookies()
    page.evaluate("() => refresh()")
    expect(old).to_contain_text("Your session has ended. Log in to Airflow")
    page.get_by_role("link", name="Log in to Airflow").click()
    page.wait_for_url(f"**/auth/login?next=*{CONN_ID}")


def test_the_list_works_with_the_keyboard_alone(open_page: OpenPage) -> None:
    page = open_page("user", LIST)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("searchbox").focus()
    page.keyboard.type("click")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Choose all").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("checkbox")).to_be_checked()


def test_offsets_are_previewed_by_clicks(open_page: OpenPage) -> None:
    page = open_page("op", f"{LIST}/connector?name={LAGGING}")
    page.get_by_role("link", name="Set or reset offsets").click()
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_text("records will be written again").first).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Change"))).to_have_count(0)  # it is not stopped
    saved(page, "pages-offsets")


def test_a_configuration_is_typed_checked_and_corrected(open_page: OpenPage, showcase: Showcase) -> None:
    page = open_page("op", f"{LIST}/create?from=text")
    config = {**showcase.config(NEW), "name": "typed", "flush.size": "many"}
    page.get_by_label("Configuration").fill("\n".join(f"{key}={value}" for key, value in config.items()))
    page.get_by_role("button", name="Check").click()
    wrong = page.get_by_label("flush.size (required)")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / "pages-create.png")
    assert Axe().run(page).violations_count == 0
    wrong.fill("50")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("button", name="Create typed")).to_be_visible()


def test_a_running_copy_moves_without_a_reload_until_its_end(open_page: OpenPage, busy: BusyConnector) -> None:
    page = open_page("viewer", f"airflow-connect/{BUSY_CONN_ID}/connector?name={BUSY}")
    page.evaluate("document.body.dataset.loaded = 'once'")
    busy.engine.report(0, 18)
    expect(page.locator("#live")).to_contain_text("Copied 18 of 90 records", timeout=60_000)
    page.get_by_role("link", name=re.compile("^Run 2")).click()
    page.evaluate("document.body.dataset.loaded = 'once'")
    busy.engine.report(1, 36)
    expect(page.locator("#live")).to_contain_text("Copied 54 of 90 records", timeout=60_000)
    expect(page.locator("#said")).to_have_text(f"{BUSY}: copy, 60 %")
    expect(page.locator(".spans").last.locator("rect")).to_have_count(2)
    problems = Axe().run(page).response["violations"]
    assert [p["id"] for p in problems if p["impact"] in ("serious", "critical")] == []
    saved(page, "pages-run-copying")
    busy.finish()
    expect(page.get_by_role("heading", name="Audit")).to_be_visible(timeout=60_000)
    expect(page.locator("#said")).to_have_text("The run has ended.")
    assert page.evaluate("document.body.dataset.loaded") == "once"
    assert page.locator("#live").get_attribute("data-every") == "0"


def test_a_configuration_is_checked_while_it_is_typed(open_page: OpenPage, showcase: Showcase) -> None:
    page = open_page("op", f"{LIST}/create?from=text")
    config = {**showcase.config(LAGGING), "name": "while-typing", "flush.size": "many"}
    page.get_by_label("Configuration").fill(json.dumps(config))
    wrong = page.get_by_label("flush.size (required)")
    expect(wrong).to_have_attribute("aria-invalid", "true")  # nobody has clicked
    expect(wrong).to_have_accessible_description(re.compile("Invalid value many"))
    wrong.fill("5")
    expect(wrong).not_to_have_attribute("aria-invalid", "true")
    expect(wrong).to_be_focused()
    expect(page.get_by_text("There is no mistake")).to_be_visible()
    page.get_by_role("button", name="Show what a run would copy").click()
    expect(page.get_by_role("button", name="Create while-typing")).to_be_visible()
    expect(page.get_by_role("columnheader", name="To, exclusive")).to_be_visible(timeout=20_000)
    expect(wrong).to_have_value("5")
    assert Axe().run(page).violations_count == 0
    assert "while-typing" not in showcase.herder.names()


def test_an_answer_to_what_was_typed_before_is_not_shown(open_page: OpenPage, showcase: Showcase) -> None:
    page, held = open_page("op", f"{LIST}/create?from=text"), list[Route]()

    def hold_first(route: Route) -> None:
        held.append(route)
        if len(held) > 1:
            route.continue_()

    page.route("**/form", hold_first)
    text = page.get_by_label("Configuration")
    config = {**showcase.config(LAGGING), "name": "late"}
    with page.expect_request("**/form"):
        text.fill(json.dumps({**config, "flush.size": "many"}))
    text.fill(json.dumps({**config, "flush.size": "8"}))
    expect(page.get_by_text("There is no mistake")).to_be_visible()
    answer = held[0].fetch()
    assert "Invalid value many" in answer.text()
    held[0].fulfill(response=answer)
    page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    expect(page.get_by_text("There is no mistake")).to_be_visible()
    expect(page.get_by_label("flush.size (required)")).to_have_value("8")


def test_a_connector_is_edited_with_its_secret_untouched(open_page: OpenPage, showcase: Showcase) -> None:
    page = open_page("op", f"{LIST}/connector?name={HEALTHY}")
    before = showcase.herder.config(HEALTHY)
    page.get_by_role("link", name="Edit the configuration").click()
    expect(page.get_by_text("Nothing: this is the registered configuration.")).to_be_visible()
    assert SECRET not in page.content()
    size = page.get_by_label("flush.size (required)")
    size.fill("25")
    changes = page.get_by_role("region", name="What would change")
    expect(changes.get_by_role("row", name=re.compile("flush.size"))).to_contain_text("25")
    page.get_by_role("button", name=f"Save {HEALTHY}").click()
    expect(page.get_by_role("status").first).to_contain_text(f"{HEALTHY} was changed.")
    assert showcase.herder.config(HEALTHY) == {**before, "flush.size": "25"}
    # Another test looks at the last change: it is made again.
    first = {key: value for key, value in before.items() if SECRET not in value}
    showcase.herder.put_config(HEALTHY, {**first, "flush.size": "10"})
    showcase.herder.put_config(HEALTHY, before)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_the_form_of_a_connector_has_no_serious_barrier_and_fits_its_width(
    open_page: OpenPage, scheme: str, width: int
) -> None:
    page = open_page("op", f"{LIST}/edit?name={LAGGING}", width, scheme)
    page.get_by_label("flush.size (required)").fill("many")
    expect(page.get_by_label("flush.size (required)")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("tasks.max", exact=True).fill("3")
    expect(page.get_by_role("region", name="What would change")).to_contain_text("tasks.max")
    problems = Axe().run(page).response["violations"]
    assert [p["id"] for p in problems if p["impact"] in ("serious", "critical")] == []
    assert page.evaluate(_WIDER, width) == []
    page.evaluate("scrollTo(0, 0)")
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"pages-edit-{scheme}-{width}.png")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_pages_have_no_serious_barrier_and_fit_their_width(
    open_page: OpenPage, showcase: Showcase, scheme: str, width: int
) -> None:
    run = showcase.runs[FAILING][0].run_id
    pages = {
        "list": LIST,
        "connector": f"{LIST}/connector?name={FAILING}",
        "run": f"{LIST}/run?name={FAILING}&run={run}",
        "cluster": f"{LIST}/cluster",
        "doctor": f"{LIST}/doctor",
        "of-dag": f"{LIST}/connector?name={OF_DAG}",
        "offsets": f"{LIST}/offsets?name={PAUSED}",
        "create": f"{LIST}/create",
        "create-text": f"{LIST}/create?from=text",
        "dag": "airflow-connect/of?dag_id=nightly",
        "missing": f"{LIST}/connector?name=nobody",
    }
    page = open_page("op", LIST, width, scheme)
    ready = {"connector": "The newest", "run": "Audit", "cluster": "loses data", "doctor": "0 failed"}
    found: dict[str, Any] = {}
    for name, path in pages.items():
        page.goto(page.url.partition("/airflow-connect")[0] + "/" + path)
        if name in ready:
            expect(page.locator("#live")).to_contain_text(ready[name], timeout=20_000)
        problems = Axe().run(page).response["violations"]
        found |= {f"{name} {p['id']}": p["nodes"] for p in problems if p["impact"] in ("serious", "critical")}
        wide = page.evaluate(_WIDER, width)
        assert wide == [], name
        is_first = (scheme, width) == ("light", 1280)
        if name in ("list", "connector") or (is_first and name in ("run", "cluster", "doctor", "of-dag")):
            saved(page, f"pages-{name}-{scheme}-{width}" if name in ("list", "connector") else f"pages-{name}")
    assert found == {}
