"""The form of a configuration: checked while it is typed, and registered connectors that are changed in it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.airflow.ui.conftest import CONN_ID
from tests.airflow.ui.test_pages import last_entry
from tests.support.copies.showcase import HEALTHY, LAGGING, NEW, OF_DAG, SECRET, Showcase
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

BrowserOf = Callable[[str], TestClient]
LIST = f"/airflow-connect/{CONN_ID}"
PASSWORD = "producer.override.sasl.password"
EDITED = "edited"
RACK, REFERENCE = "consumer.override.client.rack", "${env:RACK_OF_THE_PAGES}"


@pytest.fixture
def edited(showcase: Showcase, browser_of: BrowserOf) -> Iterator[str]:
    """The address of the form of a registered connector with a secret and a reference."""
    config = {**showcase.config(LAGGING), "name": EDITED, PASSWORD: SECRET, RACK: REFERENCE}
    showcase.herder.create(EDITED, config, "STOPPED")
    look_again(browser_of)
    yield f"{LIST}/edit?name={EDITED}"
    showcase.herder.delete(EDITED)
    look_again(browser_of)


def look_again(browser_of: BrowserOf) -> None:
    """Pages show what they know for some seconds, unless one of them makes a change."""
    browser_of("op").post(LIST, data={"do": "resume", "name": HEALTHY})


def form_at(browser: TestClient, address: str) -> str:
    """The page of a form. On a busy machine Kafka may not answer in time: then it says so, to be loaded again."""
    pages: list[str] = []

    def is_there() -> bool:
        answer = browser.get(address)
        pages.append(answer.text)
        return answer.status_code == HTTPStatus.OK

    wait_until(is_there, "the form")
    return pages[-1]


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send if nothing was touched."""
    fields = {
        name: html.unescape(value) for name, value in re.findall(r'<input [^>]*name="([^"]+)" value="([^"]*)"', page)
    }
    for name, options in re.findall(r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', page, re.S):
        chosen = re.search(r"<option selected>([^<]*)<", options)
        fields[name] = html.unescape(chosen[1]) if chosen else ""
    fields["seen"] = html.unescape(re.findall(r'name="seen" value="(\d+)"', page)[0])
    text = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.S)
    return {**fields, "config": html.unescape(text[0])}


def field(page: str, key: str) -> str:
    """The paragraph of a key."""
    found = re.search(rf'<p data-key="{re.escape(key)}".*?</p>', page, re.S)
    assert found is not None, key
    return html.unescape(found[0])


def stored(showcase: Showcase) -> dict[str, Any]:
    return showcase.herder.config(EDITED)


# --- while it is typed -----------------------------------------------------------------------------------------------


def test_what_is_typed_is_checked_key_by_key_and_nothing_is_registered(
    browser_of: BrowserOf, showcase: Showcase
) -> None:
    op, names = browser_of("op"), showcase.herder.names()
    config = {**showcase.config(LAGGING), "name": "live", "flush.size": "many", PASSWORD: SECRET, "topcis": "x"}
    page = op.post(f"{LIST}/form", data={"do": "look", "config": json.dumps(config)})
    assert page.status_code == 200
    wrong = field(page.text, "flush.size")
    assert 'aria-describedby="key-flush.size-why key-flush.size-help"' in wrong
    assert 'aria-invalid="true"' in wrong
    assert 'id="key-flush.size-why"><span class="why">Invalid value many' in wrong
    assert SECRET not in page.text
    assert 'value="save"' not in page.text and 'value="create"' not in page.text
    right = op.post(f"{LIST}/form", data={"do": "look", "config": json.dumps({**config, "flush.size": "7"})}).text
    assert "There is no mistake" in right
    assert "topcis: Unknown key. Did you mean topics?" in right
    assert 'value="create"' not in right  # not before its plan is there
    assert showcase.herder.names() == names


def test_a_field_is_compared_with_the_text_that_stays_on_the_page(browser_of: BrowserOf, showcase: Showcase) -> None:
    config = {**showcase.config(LAGGING), "name": "live"}
    form = {"do": "look", "config": json.dumps(config), "set:flush.size": "9", "was:flush.size": config["flush.size"]}
    shown = field(browser_of("op").post(f"{LIST}/form", data=form).text, "flush.size")
    assert 'name="set:flush.size" value="9"' in shown
    assert 'name="was:flush.size" value="20"' in shown


def test_the_plan_is_shown_when_it_is_asked_for(browser_of: BrowserOf, showcase: Showcase) -> None:
    op = browser_of("op")
    form = {"do": "plan", "config": json.dumps({**showcase.config(LAGGING), "name": "live"})}
    wait_until(lambda: "To, exclusive" in op.post(f"{LIST}/form", data=form).text, "the plan")
    page = op.post(f"{LIST}/form", data=form).text
    assert re.search(r"<dt>Tasks</dt><dd>2</dd>", page)
    assert 'value="create"' in page
    assert f'<th scope="row">{showcase.topics[LAGGING]}-0</th>' in page


@pytest.mark.parametrize(
    ("form", "told"),
    [({"config": "{"}, "The configuration"), ({"config": "name=x"}, "contains no connector type"), ({}, "")],
    ids=["no-json", "no-class", "nothing"],
)
def test_what_cannot_be_read_yet_is_said_in_the_same_place(
    browser_of: BrowserOf, form: dict[str, str], told: str
) -> None:
    answer = browser_of("op").post(f"{LIST}/form", data={"do": "look", **form})
    assert answer.status_code == 200
    assert ("note bad" in answer.text, told in html.unescape(answer.text)) == (bool(told), True)


# --- registered connectors -------------------------------------------------------------------------------------------


def test_a_connector_is_changed_and_keeps_its_secret_and_its_references(
    browser_of: BrowserOf, showcase: Showcase, edited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    op, before = browser_of("op"), stored(showcase)
    page = form_at(op, edited)
    assert SECRET not in page
    assert "Nothing: this is the registered configuration." in page
    form = fields_of(page)
    assert (json.loads(form["config"])[PASSWORD], json.loads(form["config"])[RACK]) == ("[hidden]", REFERENCE)
    form |= {"set:flush.size": "33", "set:errors.tolerance": "all"}
    shown = op.post(edited, data={**form, "do": "check"})
    assert shown.status_code == 200, shown.text
    told = html.unescape(shown.text)
    assert "<del>20</del>" in told and "<ins>33</ins>" in told and f"Save {EDITED}" in told
    assert SECRET not in shown.text and stored(showcase) == before
    saved = op.post(edited, data={**fields_of(shown.text), "do": "save"})
    assert f"{EDITED} was changed." in saved.text
    assert stored(showcase) == {**before, "flush.size": "33", "errors.tolerance": "all"}
    event, who, extra = last_entry()
    assert (event, who, extra["keys"]) == ("connect.put_config", "op", ["errors.tolerance", "flush.size"])
    assert extra["connector"] == EDITED and "33" not in json.dumps(extra)


def test_a_secret_is_replaced_without_being_shown_and_removed_with_its_line(
    browser_of: BrowserOf, showcase: Showcase, edited: str
) -> None:
    op = browser_of("op")
    form = fields_of(form_at(op, edited))
    text = json.loads(form["config"])
    other = op.post(edited, data={**form, "do": "save", "config": json.dumps({**text, PASSWORD: "another-one"})})
    assert "was changed" in other.text and "another-one" not in other.text
    assert stored(showcase)[PASSWORD] == "another-one"
    form = fields_of(form_at(op, edited))
    text.pop(PASSWORD)
    shown = op.post(edited, data={**form, "do": "check", "config": json.dumps(text)}).text
    assert "another-one" not in shown
    assert f'<th scope="row">{PASSWORD}</th><td class="break"><del>[hidden]</del>' in shown
    op.post(edited, data={**form, "do": "save", "config": json.dumps(text)})
    assert PASSWORD not in stored(showcase)


def test_the_slower_of_two_people_sees_what_would_be_replaced(
    browser_of: BrowserOf, showcase: Showcase, edited: str
) -> None:
    op = browser_of("op")
    form = fields_of(form_at(op, edited))
    showcase.herder.patch_config(EDITED, {"flush.size": "44"})
    late = op.post(edited, data={**form, "do": "save", "set:errors.tolerance": "all"})
    assert late.status_code == 409
    assert "Another user has changed this connector" in late.text
    assert "<del>44</del>" in late.text and "<ins>20</ins>" in late.text
    assert stored(showcase)["flush.size"] == "44"
    again = op.post(edited, data={**fields_of(late.text), "do": "save"})
    assert "was changed" in again.text
    assert (stored(showcase)["flush.size"], stored(showcase)[PASSWORD]) == ("20", SECRET)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"flush.size": "many"}, "Invalid value many for configuration flush.size"),
        ({"name": "renamed"}, f"The name of {EDITED} cannot be changed."),
        ({"consumer.override.sasl.password": "[hidden]"}, "which stands for a secret that is not shown"),
    ],
    ids=["wrong", "renamed", "hidden"],
)
def test_a_change_that_cannot_be_made_is_explained_and_not_made(
    browser_of: BrowserOf, showcase: Showcase, edited: str, change: dict[str, str], told: str
) -> None:
    op, before = browser_of("op"), stored(showcase)
    form = fields_of(form_at(op, edited))
    untouched = {name: value for name, value in form.items() if not name.startswith(("set:", "was:"))}
    text = json.dumps({**json.loads(form["config"]), **change})
    refused = op.post(edited, data={**untouched, "do": "save", "config": text})
    assert (refused.status_code, told in html.unescape(refused.text)) == (400, True)
    assert SECRET not in refused.text
    assert stored(showcase) == before
    live = op.post(f"{LIST}/form", params={"name": EDITED}, data={**untouched, "do": "look", "config": text})
    assert told in html.unescape(live.text) and SECRET not in live.text and 'value="save"' not in live.text


def test_only_those_who_may_change_connectors_get_the_form(browser_of: BrowserOf, edited: str) -> None:
    for role, may in (("viewer", False), ("user", False), ("op", True)):
        shown = browser_of(role).get(f"{LIST}/connector", params={"name": HEALTHY}).text
        assert ("Edit the configuration" in shown) is may
        assert (browser_of(role).get(edited).status_code == 200) is may


def test_a_connector_that_cannot_be_edited_is_said_why(browser_of: BrowserOf) -> None:
    op = browser_of("op")
    of_dag = op.get(f"{LIST}/edit", params={"name": OF_DAG})
    assert (of_dag.status_code, "a DAG has its configuration" in of_dag.text) == (400, True)
    assert op.get(f"{LIST}/edit", params={"name": "nobody"}).status_code == 404
    no_offset = op.post(f"{LIST}/edit", params={"name": NEW}, data={"do": "save", "config": ""})
    assert (no_offset.status_code, "Open it again" in no_offset.text) == (400, True)
