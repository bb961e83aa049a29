"""Pages that are made from the code equal what the code makes now."""

from __future__ import annotations

import re

import pytest

from tests.docs import command_line_page, error_code_page, jdbc_types_page
from tests.docs.pages import ROOT

ERROR_CODES = ROOT / "docs" / "error-codes.md"
S3_SINK = ROOT / "docs" / "connectors" / "s3-sink.md"


@pytest.fixture(scope="module", autouse=True)
def one_reading() -> None:
    """Keeps these tests in one process, which reads the code once."""


def test_error_code_page_equals_the_code() -> None:
    assert ERROR_CODES.read_text("utf-8") == error_code_page.page()


def test_page_of_column_types_equals_what_the_tests_send() -> None:
    written = (ROOT / "docs" / "connectors" / "jdbc-source-types.md").read_text("utf-8")
    assert written == jdbc_types_page.page()


def test_every_area_of_error_codes_has_a_title() -> None:
    codes = error_code_page.codes()
    assert {code.split(".")[0] for code in codes} - error_code_page.AREAS.keys() == set()


def test_scan_for_error_codes_finds_them() -> None:
    kinds = error_code_page.error_kinds()
    assert (kinds["UnavailableError"].is_retriable, kinds["UnavailableError"].exit_code) == (True, 1)
    assert (kinds["ConfigError"].is_retriable, kinds["ConfigError"].exit_code) == (False, 2)
    assert kinds["CommitUnknownError"].is_retriable
    found = {use.code for use in error_code_page.uses()}
    assert {"s3.forbidden", "kafka.denied", "data.schemaless", "plugin.not_found"} <= found


def test_codes_in_the_errors_table_of_the_s3_sink_exist() -> None:
    codes = error_code_page.codes()
    table = S3_SINK.read_text("utf-8").partition("## Errors")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {code for cell in rows for code in re.findall(r"`([a-z0-9_.]+)`", cell)}
    assert len(named) > 15
    assert named - codes == set()


def test_help_texts_of_the_command_line_page_are_those_of_the_program() -> None:
    shown, texts = command_line_page.shown_texts(), command_line_page.help_texts()
    assert shown.keys() == texts.keys()
    for name, text in texts.items():
        # Python's minor versions indent and wrap help texts differently.
        assert shown[name].split() == text.split()
