"""Chromium, for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

PATIENCE_MS = 30_000
"""How long a page may take to show what is expected of it: as long as for an action; without it, five seconds."""


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    """A browser without pages; the test fails if it is not installed."""
    program = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.fail("The tests of the pages need Chromium: apt-get install chromium (README.md).")
    with sync_playwright() as playwright:
        # The sandbox of Chromium cannot be used by root, and these pages are our own.
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
