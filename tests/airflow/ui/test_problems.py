"""The page of problems: what it says, to whom, which button fits, and how it looks in Chromium."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from airflow_connect.errors import UnavailableError
from airflow_connect.ui.overview.model import Connector, Overview, Position, Run, State
from airflow_connect.ui.overview.problems import Letters, Problem, Trouble
from airflow_connect.ui.overview.retention import Deadline
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.asking import Console
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.checking import Checked
from airflow_connect.ui.pages.views import problems
from tests.airflow.ui.conftest import CONN_ID, ROLES, OpenPage
from tests.airflow.ui.test_in_a_browser import _WIDER, IMAGES
from tests.airflow.ui.test_pages import LIST, BrowserOf, complete, last_entry, text_of
from tests.support.copies.showcase import FAILING, HEALTHY, Showcase
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]  # a browser draws the page on a busy machine

PAGE = f"{LIST}/problems"
ALL_READ = "Checked 20"
HOUR = 3_600_000


def test_a_failure_has_its_error_its_cost_what_was_tried_and_what_helps(
    browser_of: BrowserOf, showcase: Showcase
) -> None:
    page = complete(browser_of("viewer"), PAGE, "Topic")
    told = text_of(page)
    assert "✗ Failed ! Dead letters The directory /mnt/invoices cannot be written: No space left on device." in told
    assert re.search(r"after 20\S+ \S+ UTC, \d+ \S+ ago", told)  # no state holds when a worker has reported it
    assert f"Topic {showcase.topics[FAILING]} loses data in 7 days: it keeps records for 7 days." in told
    assert re.search(r"\d+ records to copy\.", told), told  # more once other tests have replayed its dead letters
    assert "4 dead letters in the last run that read records." in told
    assert re.search(r"The last run that succeeded: \S+ \S+ UTC, \d+ \S+ ago, 20 records\.", told)
    assert "how many failed in a row is not known here" in told
    assert f"name={HEALTHY}" not in page


@pytest.mark.parametrize("role", ROLES)
def test_only_those_whose_click_would_work_have_a_button(browser_of: BrowserOf, role: str) -> None:
    page = complete(browser_of(role), PAGE, ALL_READ)
    assert (f'value="restart:{FAILING}"' in page) is (role != "viewer")


def test_the_button_restarts_and_comes_back(browser_of: BrowserOf, showcase: Showcase) -> None:
    before = len(showcase.restarts())
    answer = browser_of("user").post(LIST, data={"do": f"restart:{FAILING}", "back": "problems"})
    assert answer.url.path == PAGE
    assert f"{FAILING} was restarted." in answer.text
    assert len(showcase.restarts()) == before + 1
    event, owner, _ = last_entry()
    assert (event, owner) == ("connect.restart_connector", "user")
    showcase.ended(FAILING, "The directory /mnt/invoices cannot be written: No space left on device. Free some space.")


def test_menu_and_list_have_the_number_of_problems(browser_of: BrowserOf) -> None:
    browser = browser_of("viewer")
    complete(browser, PAGE, ALL_READ)
    page = complete(browser, LIST, "Problems of all installations: ")
    assert re.search(rf'<a href="{PAGE}">Problems \([1-9]\)</a>', page)


def test_an_installation_that_cannot_be_read_is_a_problem(
    browser_of: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, connect_absent")
    browser = browser_of("viewer")
    told = text_of(complete(browser, PAGE, "connect_absent cannot be read."))
    assert "Nothing is known of its connectors." in told
    wait_until(lambda: "Problems (2)" in browser.get(PAGE).text, "the menu to count the installation")


# --- without a broker ------------------------------------------------------------------------------------------------


def told_of(monkeypatch: pytest.MonkeyPatch, browser_of: BrowserOf, *every: Checked) -> str:
    monkeypatch.setattr(problems, "checked", lambda _: list(every))
    return text_of(browser_of("viewer").get(PAGE).text)


def seen_of(*connectors: Connector) -> Seen[Overview]:
    return Seen(Overview(1_790_000_000_000, {c.name: c for c in connectors}), 0.0, "", is_waiting=False)


def test_one_line_says_that_nothing_is_wrong_and_when_that_was_checked(
    browser_of: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    none: Seen[dict[str, Deadline]] = Seen({}, 0.0, "", is_waiting=False)
    well = Checked("a", seen_of(), none, ())
    line = "Nothing is wrong in a. Checked 2026-09-21 14:13:20 UTC."
    assert line in told_of(monkeypatch, browser_of, well)
    unread = Checked("b", Seen(None, 0.0, "", is_waiting=True), None, ())
    told = told_of(monkeypatch, browser_of, well, unread)
    assert "Nothing is wrong" not in told
    assert "Not read completely yet: b." in told


def test_what_was_not_looked_at_is_said(browser_of: BrowserOf, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: Seen[dict[str, Deadline]] = Seen(None, 0.0, "Kafka refuses it.", is_waiting=False)
    away = Connector("away", "sink", {}, State.CURRENT, lag_problem="It reads another cluster.")
    gone = Connector("gone", "sink", None, State.WAITING, lag=5, schedule_problem="This Airflow has no DAG g.")
    told = told_of(monkeypatch, browser_of, Checked("a", seen_of(away, gone), refused, ()))
    assert "No problem was found in a." in told
    assert "a: when topics lose records is not known. Kafka refuses it." in told
    assert "a: the lag of 1 connector is not known (away)" in told
    assert "a: 1 connector with records to copy may be late (gone); nothing here tells." in told
    assert "This Airflow has no DAG g." in told


NOW = time.time_ns() // 1_000_000
SINK = Connector("c", "sink", {"errors.deadletterqueue.topic.name": "dlq"}, State.CURRENT, target="STARTED")
OF_A_DAG = replace(SINK, config=None, target="", runs=(Run("r", "failed", 1, 2, origin={"dag_id": "d"}),))
OFFSETS = Run("r", "failed", NOW - HOUR, NOW - HOUR, error={"code": "offset.out_of_range"})


LETTERS = Run("r", "done", NOW - HOUR, NOW, records=5, dead_lettered=2, origin={"dag_id": "d"}, queue="dlq")


@pytest.mark.parametrize(
    ("connector", "troubles", "word"),
    [
        (replace(SINK, state=State.FAILED), (Trouble.FAILED,), "Restart"),
        (replace(SINK, state=State.FAILED, runs=(OFFSETS,)), (Trouble.FAILED,), "Offsets"),
        (replace(SINK, state=State.LATE), (Trouble.LATE,), "Run now"),
        (replace(SINK, state=State.PAUSED, target="PAUSED"), (Trouble.LOSING,), "Resume"),
        (replace(SINK, positions=(Position("t", 0, 1, 5, 5, 9),)), (Trouble.LOST,), "Offsets"),
        (SINK, (Trouble.DEAD_LETTERS,), "Replay dead letters"),
        (SINK, (Trouble.UNREADABLE,), ""),
        (replace(OF_A_DAG, state=State.FAILED), (Trouble.FAILED,), "Run now"),
        (replace(OF_A_DAG, state=State.LATE), (Trouble.LATE,), "Run now"),
        (replace(OF_A_DAG, state=State.PAUSED), (Trouble.LOSING,), "Resume its DAG"),
        (OF_A_DAG, (Trouble.DEAD_LETTERS,), "Dead letters"),
        (replace(OF_A_DAG, runs=(LETTERS,)), (Trouble.DEAD_LETTERS,), "Replay dead letters"),
        (SINK, (Trouble.GROWING,), "Replay dead letters"),
    ],
)
def test_the_button_fits_the_problem(connector: Connector, troubles: tuple[Trouble, ...], word: str) -> None:
    call = Call(None, None, "/pages", "a", {})  # type: ignore[arg-type]
    problem = Problem(connector, troubles)
    found = problems._help(call, problem, may_run=True, may_change=True)
    assert (found.word if found else "") == word
    seen = problems._help(call, problem, may_run=False, may_change=False)
    assert (seen.word if seen else "") == (
        "Dead letters" if {Trouble.DEAD_LETTERS, Trouble.GROWING} & set(troubles) else ""
    )


def test_dead_letters_that_become_more_say_how_many_there_were(
    browser_of: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = replace(LETTERS, run_id="1", ended_ms=NOW - HOUR), replace(LETTERS, run_id="2", dead_lettered=1200)
    problem = Problem(replace(SINK, runs=(last, first)), (Trouble.GROWING,), letters=Letters((last, first)))
    told = told_of(monkeypatch, browser_of, Checked("a", seen_of(problem.connector), None, (problem,)))
    assert "! More dead letters" in told
    assert "1,200 dead letters in the last run that read records." in told
    assert "2 in the run before it, 1,202 in the last 2 runs that read records." in told
    assert re.search(r"! More dead letters \S+ \S+ UTC, \d+ min ago", told)  # the module was read a while ago


def test_a_message_leads_to_the_page_of_all_installations(browser_of: BrowserOf) -> None:
    assert browser_of("viewer").get("/airflow-connect/problems").url.path == PAGE


def test_the_page_does_not_wait_for_kafka() -> None:
    may_answer = threading.Event()

    class Slow:
        def get(self, conn_id: str) -> object:
            assert may_answer.wait(30)
            raise UnavailableError(f"{conn_id} does not answer.")

    console = Console(Slow())  # type: ignore[arg-type]
    seen = console.known("a")
    assert (seen.value, seen.is_waiting) == (None, True)
    may_answer.set()
    wait_until(lambda: console.known("a", 60.0).problem == "a does not answer.", "the answer")


def test_problems_are_found_once_for_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(None)  # type: ignore[arg-type]
    read = [seen_of(replace(SINK, state=State.LATE)).value, seen_of(SINK).value]
    none: dict[str, Deadline] = {}
    monkeypatch.setattr(time, "time_ns", lambda: NOW * 1_000_000)
    first = console.problems("a", read[0], none)  # type: ignore[arg-type]
    assert [problem.troubles for problem in first] == [(Trouble.LATE,)]
    assert console.problems("a", read[0], none) is first  # type: ignore[arg-type]
    assert console.problems("a", read[1], none) == ()  # type: ignore[arg-type]
    soon = {"t": Deadline("t", "c", "t-0", NOW + HOUR, 24 * HOUR)}
    assert [p.troubles for p in console.problems("a", read[1], soon)] == [(Trouble.LOSING,)]  # type: ignore[arg-type]
    far = {"t": Deadline("t", "c", "t-0", NOW + 24 * HOUR + 30_000, 48 * HOUR)}
    assert console.problems("a", read[1], far) == ()  # type: ignore[arg-type]
    monkeypatch.setattr(time, "time_ns", lambda: (NOW + 60_000) * 1_000_000)
    assert len(console.problems("a", read[1], far)) == 1  # type: ignore[arg-type]


# --- in Chromium -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_it_has_no_serious_barrier_and_fits_its_width(open_page: OpenPage, scheme: str, width: int) -> None:
    page = open_page("op", PAGE.removeprefix("/"), width, scheme)
    expect(page.locator("#live")).to_contain_text("loses data in", timeout=20_000)
    expect(page.get_by_role("button", name=f"Restart {FAILING}")).to_be_visible(timeout=20_000)
    serious = [p for p in Axe().run(page).response["violations"] if p["impact"] in ("serious", "critical")]
    assert {p["id"]: p["nodes"] for p in serious} == {}
    assert page.evaluate(_WIDER, width) == []
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"pages-problems-{scheme}-{width}.png", full_page=True)
