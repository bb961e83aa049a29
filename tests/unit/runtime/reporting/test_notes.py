"""Sentences for the report: each once, the first of them, all of them in the log."""

from __future__ import annotations

import logging

import pytest

from airflow_connect.runtime.reporting.notes import MOST_NOTES, Notes


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
