"""Each absolute sentence of the README names the test that shows it, so that it cannot outlive what it says."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, prose, text_of

README = ROOT / "README.md"
ABSOLUTE = re.compile(r"\b(not|never|nothing|none|no|only|always|unchanged|every|each|exactly once)\b", re.IGNORECASE)
LONGEST = 150

# The beginning of a sentence, and what shows it. A sentence that is about this page, or orders a step, needs no test.
SHOWN_BY = {
    "Run Kafka Connect connectors as Airflow tasks": "tests/airflow/",
    "**Your configurations work unchanged.**": "tests/integration/runtime/source/test_stock_files.py",
    "**Exactly once**, from offsets in Kafka": "tests/crash/test_kill_rounds.py",
    "**Nothing runs between two runs.**": "tests/integration/runtime/engine/test_local.py",
    "No Connect cluster, no hand-written Spark jobs": "tests/airflow/",
    "An empty run takes 0.3 s and starts no JVM": "docs/benchmarks.md",
    "A record becomes visible at the end of a run": "tests/integration/stores/test_s3_staging.py",
    "**Your connector is a Java class": "tests/unit/runtime/driver/test_java_notes.py",
    "Most Java connectors [run here]": "tests/integration/connectors/java/",
    "Debezium reads the changes of a database": "tests/airflow/pages/test_change_data_capture.py",
    "Java connectors run with Java converters": "tests/integration/connectors/java/test_chain.py",
    "**You have no Linux, or an Airflow before 3.3.**": "pyproject.toml",
    "Java is optional": "tests/unit/jvm/test_java.py",
    "The search sink has never been run against Elasticsearch": "docs/connectors/search-sink.md",
    "Nothing else has been tried": "pyproject.toml",
    "Version 0.1.0 is not released": "CHANGELOG.md",
    "All three do the same bounded runs": "tests/integration/connect_handover/",
    "Two at once do no harm": "tests/integration/runtime/sink/recovery/test_fencing.py",
    "The [command line](docs/cli-connectors.md) works with each of them": "tests/integration/cli/",
}
ABOUT_THE_PAGE = (
    "In a checkout, two commands do their own set-up",
    "What is promised for each of them",
    "For less, use Kafka Connect",
    "On Debian and Ubuntu",
    "## When not to use it",
    "`make demo",
    "`make test` runs lint",
    "Sensors, an asset watcher",
    "Every connector, its lag",
    "[exactly once]",
)


def sentences() -> list[str]:
    """Sentences of the README outside of code, tables and headings."""
    lines = [line for line in prose(README).splitlines() if not line.startswith(("|", "#", "!["))]
    text = re.sub(r"\s+", " ", "\n".join(line.removeprefix("- ") for line in lines))
    return [sentence.strip() for sentence in re.split(r"(?<=[.:*])\s+(?=[A-Z*`\[])", text) if sentence.strip()]


@pytest.mark.parametrize("sentence", [s for s in sentences() if ABSOLUTE.search(s)])
def test_an_absolute_sentence_of_the_readme_has_its_proof(sentence):
    known = sentence.startswith(ABOUT_THE_PAGE) or any(sentence.startswith(start) for start in SHOWN_BY)
    assert known, f"Add the sentence to SHOWN_BY with the test that shows it: {sentence}"


@pytest.mark.parametrize("start", SHOWN_BY)
def test_what_shows_a_sentence_exists_and_the_sentence_too(start):
    assert (ROOT / SHOWN_BY[start]).exists()
    assert any(sentence.startswith(start) for sentence in sentences())


def test_readme_is_short_and_begins_with_a_picture():
    lines = text_of(README).splitlines()
    picture = next(number for number, line in enumerate(lines) if line.startswith("!["))
    words = len(" ".join(lines[:picture]).split())
    assert len(lines) <= LONGEST
    assert words <= 60
