"""Where the documentation is: addresses of its pages, for messages that people read without the repository."""

from __future__ import annotations

from typing import Final

SITE: Final = "https://airflow-connect.readthedocs.io/en/stable/"
"""The site that `make docs` builds, for the newest release. A test follows every address made from it."""


def page_url(page: str, anchor: str = "") -> str:
    """The address of a page.

    Args:
        page: its path below docs/ without a suffix, such as `how-to/write-a-connector`.
        anchor: a heading of it in the form of a link, or "".
    """
    return f"{SITE}{page}.html{f'#{anchor}' if anchor else ''}"


def error_url(code: str) -> str:
    """The address of an error code's entry, such as that of `access.denied`."""
    return page_url("error-codes", code)
