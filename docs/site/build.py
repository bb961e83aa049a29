"""Build the documentation site: `make docs`, or `python docs/site/build.py OUTPUT`.

The pages stay where a code host shows them well. This program lays them out as the site has them (`README.md` becomes
the front page, `docs/` its root), leads links between them to their new places, adds the navigation, and runs Sphinx,
which fails on each warning.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).parents[2]
SITE = Path(__file__).parent
# Pages outside of docs/, and what they are called on the site.
ELSEWHERE = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "AGENTS.md": "agents.md",
    "SECURITY.md": "security.md",
    "docker/README.md": "docker.md",
}
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".properties": "properties", "": "text"}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<rest>#[^)\s]*)?\)")
_CODE = re.compile(r"^\| `([a-z0-9_]+\.[a-z0-9_.]+)` \|", re.MULTILINE)
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)

# What the reader wants to do, and the pages for it, in the order of the navigation.
NAVIGATION: dict[str, tuple[str, ...]] = {
    "Start": (
        "how-to/first-copy",
        "how-to/use-in-your-airflow",
        "how-to/try-without-a-server",
        "concepts/run",
        "concepts/offsets",
        "concepts/errors-and-dead-letters",
        "concepts/file-sizes",
        "concepts/sources",
        "exactly-once",
        "docker",
    ),
    "Connectors": (
        "connectors/s3-sink",
        "connectors/hdfs-sink",
        "connectors/local-sink",
        "connectors/file-stream-sink",
        "connectors/jdbc-sink",
        "connectors/iceberg-sink",
        "connectors/search-sink",
        "connectors/file-source",
        "connectors/jdbc-source",
        "connectors/jdbc-source-rows",
        "connectors/databases",
        "connectors/mirror-source",
        "connectors/mirror-checkpoint",
        "connectors/mirror-heartbeat",
        "connectors/restore-source",
        "connectors/file-import",
        "connectors/s3-source.reference",
        "connectors/hdfs-source.reference",
        "connectors/local-source.reference",
        "connectors/metrics-source",
        "converters",
        "transformations",
        "config-providers",
        "java-plugins",
        "java-plugins.reference",
        "compatibility",
    ),
    "Airflow": (
        "airflow-objects",
        "pages",
        "how-to/hooks-and-connections",
        "how-to/many-connectors",
        "how-to/wait-for-data",
        "how-to/get-an-alarm",
        "how-to/know-when-an-hour-is-complete",
        "how-to/approve-a-copy",
        "how-to/free-the-worker-slot",
        "how-to/run-on-a-spark-cluster",
        "how-to/size-a-cluster",
    ),
    "Tasks": (
        "how-to/import-log-files",
        "how-to/replicate-a-database",
        "how-to/change-data-capture",
        "how-to/mirror-clusters",
        "how-to/back-up-topics",
        "how-to/fill-a-lake-table",
        "how-to/restore-a-topic",
        "how-to/import-a-folder",
        "how-to/hive-tables",
        "how-to/reset-and-replay",
        "how-to/ten-minutes-from-a-connect-cluster",
        "how-to/migrate-from-a-connect-cluster",
        "how-to/migrate-from-confluent-s3",
        "how-to/migrate-from-confluent-hdfs",
        "how-to/replace-a-jdbc-connect-cluster",
    ),
    "Operate": ("operations", "rest", "cli", "cli-connectors", "embedded", "benchmarks", "security"),
    "Extend": (
        "how-to/write-a-connector",
        "how-to/write-a-store",
        "plugin-api",
        "architecture",
        "contributing",
        "releasing",
        "agents",
    ),
    "Reference": (
        "error-codes",
        "worker.reference",
        "transformations.reference",
        "connectors/jdbc-source-types",
        "changes",
        "contents",
    ),
}


def page_on_site(path: PurePosixPath) -> PurePosixPath | None:
    """Where the site has the page `path` of the repository; None for what is not a page of it."""
    if str(path) in ELSEWHERE:
        return PurePosixPath(ELSEWHERE[str(path)])
    if path.suffix == ".md" and path.parts[0] == "docs":
        return path.relative_to("docs")
    return None


class Layout:
    """Copies pages, pictures and the source files they link to into a folder that Sphinx reads."""

    def __init__(self, target: Path) -> None:
        """Begin with an empty folder."""
        self._target = target
        self._files: set[PurePosixPath] = set()
        shutil.rmtree(target, ignore_errors=True)

    def lay_out(self) -> None:
        """Write every page, the navigation and the files that pages link to."""
        pages = list(map(PurePosixPath, ELSEWHERE))
        pages += [PurePosixPath(p.relative_to(ROOT).as_posix()) for p in (ROOT / "docs").rglob("*.md")]
        for page in dict.fromkeys(pages):
            place = page_on_site(page)
            assert place is not None
            text = self._moved(page, place)
            if place.name == "error-codes.md":
                text = with_anchors(text)
            self._write(place, text + navigation_below(place))
        for file in self._files:
            self._write(_page_of_file(file), _shown(file))
        shutil.copytree(ROOT / "docs" / "images", self._target / "images")

    def _moved(self, page: PurePosixPath, place: PurePosixPath) -> str:
        """The text of a page with its links as they are from its place on the site."""
        parts = _FENCE.split((ROOT / page).read_text("utf-8"))
        for number in range(0, len(parts), 2):
            parts[number] = _LINK.sub(lambda found: self._link(found, page, place), parts[number])
        return "".join(parts)

    def _link(self, found: re.Match[str], page: PurePosixPath, place: PurePosixPath) -> str:
        target = found["target"]
        if target.startswith(("https:", "http:", "mailto:")):
            return found[0]
        aim = _below_root(page.parent / target)
        if aim.parts[:2] == ("docs", "images"):
            there = aim.relative_to("docs")
        elif (on_site := page_on_site(aim)) is not None:
            there = on_site
        else:
            self._files.add(aim)
            there = _page_of_file(aim)
        # A path says little on a site: such a link shows the title of its page.
        text = "" if found["text"].endswith(".md") else found["text"]
        return f"{found['image']}[{text}]({_relative(there, place)}{found['rest'] or ''})"

    def _write(self, place: PurePosixPath, text: str) -> None:
        file = self._target / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def navigation_below(page: PurePosixPath) -> str:
    """Tables of contents at the end of a page: on the front page all captions, for a connector the page of its keys."""
    if page.name == "index.md":
        return "".join(_contents(pages, caption) for caption, pages in NAVIGATION.items())
    keys = page.with_suffix(".reference.md")
    is_of_connector = page.parts[0] == "connectors" and (ROOT / "docs" / keys).exists()
    return _contents([keys.with_suffix("").name]) if is_of_connector else ""


def _contents(pages: Iterable[str], caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def with_anchors(page: str) -> str:
    """The page of error codes with an anchor at the first row of each code: messages link to it."""
    seen: set[str] = set()

    def row(found: re.Match[str]) -> str:
        code = found[1]
        if code in seen:
            return found[0]
        seen.add(code)
        return f'| <span id="{code}"></span>`{code}` |'

    return _CODE.sub(row, page)


def _page_of_file(file: PurePosixPath) -> PurePosixPath:
    return PurePosixPath("files", f"{file}.md")


def _shown(file: PurePosixPath) -> str:
    text = (ROOT / file).read_text("utf-8")
    return f"---\norphan: true\n---\n\n# {file}\n\n```{LANGUAGES.get(file.suffix, 'text')}\n{text}\n```\n"


def _below_root(path: PurePosixPath) -> PurePosixPath:
    return PurePosixPath((ROOT / path).resolve().relative_to(ROOT).as_posix())


def _relative(there: PurePosixPath, place: PurePosixPath) -> str:
    up = "../" * len(place.parent.parts)
    return f"{up}{there}"


def main(arguments: list[str]) -> int:
    """Build the site into the folder that is the first argument; return Sphinx's exit code."""
    output = Path(arguments[0] if arguments else "build/site").resolve()
    source = output.parent / f"{output.name}-source"
    Layout(source).lay_out()
    more = ["--jobs", "2", "--fail-on-warning", "--keep-going", "--quiet", *arguments[1:]]
    status = sphinx([*more, "-b", "html", "-c", str(SITE), str(source), str(output)])
    if status == 0:
        print(f"The site is in {output}: open index.html.")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
