"""Sentences for the report: each once, the first of them, all of them in the log."""

from __future__ import annotations

import logging

import pytest

from airflow_connect.runtime.reporting.notes import MOST_NOTES, Notes, of_tasks


def test_each_sentence_is_kept_and_logged_once(caplog: pytest.LogCaptureFixture):
    notes = Notes()
    with caplog.at_level(logging.WARNING):
        for sentence in ("One.", "Two.", "One."):
            notes.add(sentence)
    assert notes.sentences == ("One.", "Two.")
    assert caplog.messages == ["One.", "Two."]


def test_sentences_beyond_the_first_are_counted_only():
    notes = Notes()
    for number in range(MOST_NOTES + 3):
        notes.add(f"Note {number}.")
    assert notes.sentences[:MOST_NOTES] == tuple(f"Note {number}." for number in range(MOST_NOTES))
    assert notes.sentences[MOST_NOTES:] == ("There were 3 more notes; the log has all of them.",)


def test_sentence_with_a_number_that_was_said_twice_tells_that():
    notes = Notes()
    for sentence in ("6 records were skipped.", "Records were skipped.", "6 records were skipped."):
        notes.add(sentence)
    assert notes.sentences == ("6 records were skipped. This was noted 2 times.", "Records were skipped.")


def test_number_of_a_note_is_the_sum(caplog: pytest.LogCaptureFixture) -> None:
    notes = Notes()
    with caplog.at_level(logging.WARNING):
        notes.count("Values written as null:", 2)
        notes.add("Slow.")
        notes.count("Values written as null:", 3)
    assert notes.sentences == ("Slow.", "Values written as null: 5.")
    assert caplog.messages == ["Values written as null: 2 so far.", "Slow."]


def test_notes_with_numbers_beyond_the_first_are_counted_only() -> None:
    notes = Notes()
    for number in range(MOST_NOTES + 2):
        notes.count(f"Values of {number}:", 1)
    assert len(notes.sentences) == MOST_NOTES + 1
    assert notes.sentences[-1] == "There were 2 more notes; the log has all of them."


def test_equal_numbers_of_several_tasks_are_not_one_number():
    assert of_tasks([["6 offsets were written.", "Slow."], ["6 offsets were written.", "Slow."], ["7 offsets."]]) == [
        "6 offsets were written. 2 tasks report this, each about its own records.",
        "Slow.",
        "7 offsets.",
    ]


def test_counts_of_several_tasks_become_one_note_with_the_sum() -> None:
    first = Notes()
    first.count("Values written as null:", 1_999)
    assert of_tasks([first.sentences, ["Values written as null: 3.", "Slow."]]) == [
        "Slow.",
        "Values written as null: 2,002.",
    ]


def test_notes_of_tasks_that_are_left_out_are_counted():
    assert of_tasks([["a"], ["b"], ["c"]], most=2) == ["a", "b", "There was 1 more note; the log has all of them."]


def test_what_is_noticed_again_when_the_same_is_looked_at_once_more_is_not_counted_again() -> None:
    notes = Notes()
    for number in range(MOST_NOTES + 1):
        notes.add(f"File {number} was modified.")
    before = notes.sentences
    assert before[-1] == "There was 1 more note; the log has all of them."
    notes.begin_again()
    for number in range(MOST_NOTES + 1):
        notes.add(f"File {number} was modified.")
    assert notes.sentences == before
    notes.add("File 99 was modified.")
    assert notes.sentences[-1] == "There were 2 more notes; the log has all of them."


def test_control_characters_of_names_are_escaped_in_report_and_log(caplog: pytest.LogCaptureFixture) -> None:
    """A file may be called so that the rest of its name looks like a line of the log."""
    notes = Notes()
    with caplog.at_level(logging.WARNING):
        notes.add("/logs/\x1b[31ma\n2026-11-26 INFO done.log has waited.")
        notes.count("Records cut in /logs/a\r\u2028b:", 2)
    expected = "/logs/\\x1b[31ma\\n2026-11-26 INFO done.log has waited."
    assert notes.sentences == (expected, "Records cut in /logs/a\\x0d\\u2028b: 2.")
    assert caplog.messages == [expected, "Records cut in /logs/a\\x0d\\u2028b: 2 so far."]
