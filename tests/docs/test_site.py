"""The site is built without a warning, and every link of it leads somewhere, those of messages included."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from airflow_connect.documentation import SITE, error_url, page_url
from airflow_connect.runtime.reporting.presentation import error_lines
from tests.docs.error_code_page import PACKAGE, codes
from tests.docs.pages import ROOT

CALL = re.compile(r"""page_url\(\s*["']([\w./-]+)["'](?:,\s*["']([\w.-]+)["'])?\s*\)""")


class Page(HTMLParser):
    """The links of a page, and what links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.links += [value for name in ("href", "src") if (value := found.get(name))]
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}


class Site:
    """A built site: its pages and files, by their paths below its folder."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
        self.pages = {path: Page((folder / path).read_text("utf-8")) for path in self.files if path.suffix == ".html"}

    def leads_somewhere(self, link: str, page: Path = Path("index.html")) -> bool:
        target = urlsplit(link)
        if target.scheme or target.netloc:
            return True
        there = page if not target.path else Path(*_normal((page.parent / unquote(target.path)).parts))
        if there not in self.files:
            return False
        return not target.fragment or there.suffix != ".html" or unquote(target.fragment) in self.pages[there].anchors


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site, which Sphinx refuses if there is a warning."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, str(ROOT / "docs/site/build.py"), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    return Site(folder)


def _normal(parts: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if part == "..":
            found.pop()
        elif part != ".":
            found.append(part)
    return found


def test_every_link_of_the_site_leads_somewhere(site):
    lost = {
        (str(page), link)
        for page, content in site.pages.items()
        for link in content.links
        if not site.leads_somewhere(link, page)
    }
    assert lost == set()
    assert len(site.pages) > 70
    assert not site.leads_somewhere("no-such-page.html")
    assert not site.leads_somewhere("error-codes.html#no.such_code")


def test_every_error_code_has_an_anchor(site):
    assert codes() - site.pages[Path("error-codes.html")].anchors == set()


def test_addresses_in_messages_lead_to_pages(site):
    calls = {call for path in PACKAGE.rglob("*.py") for call in CALL.findall(path.read_text("utf-8"))}
    links = [page_url(*call).removeprefix(SITE) for call in calls]
    assert [link for link in links if not site.leads_somewhere(link)] == []
    assert len(links) >= 5


def test_an_error_shows_the_address_of_its_code(site):
    lines = error_lines({"code": "kafka.denied", "message": "Kafka denied access.", "suggestion": "Grant the ACL."})
    assert lines[-1].strip() == error_url("kafka.denied")
    assert site.leads_somewhere(error_url("kafka.denied").removeprefix(SITE))


def test_links_and_pictures_of_the_readme_on_pypi_lead_to_the_site(site):
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    metadata.validate_fields()
    text = metadata.core.readme
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    relative = [link for link in links if not urlsplit(link).scheme and not link.startswith("#")]
    ours = [link.removeprefix(SITE) for link in links if link.startswith(SITE)]
    assert relative == []
    assert [link for link in ours if not site.leads_somewhere(link)] == []
    assert len(ours) > 20
