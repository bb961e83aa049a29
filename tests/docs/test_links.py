"""Every link leads somewhere, and every path and symbol that the documentation names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, code_spans, name_of, prose, text_of

PACKAGE = ROOT / "airflow_connect"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PATH = re.compile(r"[\w.+-]+(/[\w.+*-]+)*/?")
TOP = {"airflow_connect", "dags", "docker", "docs", "tests"}
MADE_BY_READERS = {"docker/.env"}
SYMBOLS = re.compile(r"`(?P<path>[\w/]+\.py)`: (?P<names>`[\w.]+`(?:, `[\w.]+`)*)")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_of_a_page_lead_to_a_file_and_a_heading(page: Path) -> None:
    lost = [target for target in LINK.findall(prose(page)) if not leads_somewhere(page, target)]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_that_a_page_names_exist(page: Path) -> None:
    missing = [path for path in paths_in(page) if not exists(path)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_symbols_named_beside_a_file_are_defined_in_it(page: Path) -> None:
    unknown = [
        f"{found['path']}: {name}"
        for found in SYMBOLS.finditer(prose(page))
        for name in re.findall(r"`([\w.]+)`", found["names"])
        if name.split(".")[-1] not in symbols_of(module(found["path"]))
    ]
    assert unknown == []


def test_tree_of_the_architecture_page_exists_and_has_every_package() -> None:
    shown = set(tree_paths())
    missing = sorted(path for path in shown if not (ROOT / path).exists())
    packages = {f"{folder.parent.relative_to(ROOT)}/" for folder in PACKAGE.rglob("__init__.py")}
    assert missing == []
    assert packages - shown == set()


def test_patterns_find_what_they_are_for() -> None:
    page = ROOT / "docs" / "architecture.md"
    assert leads_somewhere(page, "exactly-once.md")
    assert not leads_somewhere(page, "exactly-twice.md")
    assert not leads_somewhere(page, "exactly-once.md#no-such-heading")
    assert len(list(paths_in(page))) > 30
    assert len(SYMBOLS.findall(prose(page))) > 15
    assert "SinkRun" in symbols_of(module("runtime/driver/sink/run.py"))


def leads_somewhere(page: Path, target: str) -> bool:
    if target.startswith(("https://", "http://", "mailto:")):
        return True
    file, _, heading = target.partition("#")
    found = page if not file else (page.parent / file).resolve()
    if not found.exists():
        return False
    return not heading or heading in anchors_of(found)


def anchors_of(page: Path) -> set[str]:
    """Anchors as GitHub makes them: lower case, punctuation gone, blanks to hyphens."""
    titles = HEADING.findall(text_of(page))
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).replace(" ", "-") for title in titles}


def paths_in(page: Path) -> Iterator[str]:
    """Paths in code spans: below a folder of the root, or a module of the package."""
    for span in code_spans(page):
        if PATH.fullmatch(span) and span not in MADE_BY_READERS:
            is_rooted = "/" in span and span.split("/")[0] in TOP
            if is_rooted or ("/" in span and span.endswith(".py")):
                yield span


def exists(path: str) -> bool:
    if "*" in path:
        return any(ROOT.glob(path)) or any(PACKAGE.glob(path))
    return (ROOT / path).exists() or (PACKAGE / path).exists()


def module(path: str) -> Path:
    return ROOT / path if (ROOT / path).exists() else PACKAGE / path


def symbols_of(path: Path) -> set[str]:
    """Names of classes, functions and constants that a module defines, at any depth."""
    tree = ast.parse(path.read_text("utf-8"))
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return defined | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def tree_paths() -> Iterator[str]:
    """Paths of the tree on the architecture page; two blanks of indentation for each level."""
    (tree,) = blocks("tree")
    folders: list[str] = []
    for line in tree.text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        del folders[depth:]
        for name in re.split(r"\s{2,}", line.strip())[0].split():
            if name.endswith("/"):
                folders.append(name)
                yield "".join(folders)
            elif name.endswith(".py"):
                yield "".join(folders) + name
