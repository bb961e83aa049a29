"""Which notes of runs a worker's log has."""

from airflow_connect.control.worker.run_notes import Heard, RunNotes


def hide(text: str) -> str:
    return text.replace("secret", "[hidden]")


def test_notes_are_told_once_for_a_run_and_again_if_a_run_has_copied_something():
    told: list[str] = []
    notes = RunNotes(told.append)
    notes.tell("c", ["a", "b", "a"], hide, has_copied=True)
    notes.tell("c", ["a", "b"], hide, has_copied=True)
    assert told == ["c: a", "c: b"] * 2


def test_a_run_that_copied_nothing_repeats_nothing():
    told: list[str] = []
    notes = RunNotes(told.append)
    for found in (["a"], ["a", "secret"], ["a"], [], ["a"]):
        notes.tell("c", found, hide, has_copied=False)
    notes.tell("d", ["a"], hide, has_copied=False)
    assert told == ["c: a", "c: [hidden]", "c: a", "d: a"]


def test_warnings_and_notes_of_plans_are_heard():
    heard = Heard()
    for event in ({"event": "start"}, {"event": "plan", "notes": ["p"]}, {"event": "warning", "message": "w"}):
        heard(event)
    assert heard.texts == ["p", "w"]
