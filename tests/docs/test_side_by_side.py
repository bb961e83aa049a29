"""`make bench ARGS=--peers`: its table on the page, its ratios, and what it counts back."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.bench import last_release
from tests.bench.file_sinks import check_lines
from tests.bench.output import Measured
from tests.bench.peers import figures, side_by_side
from tests.bench.peers.figures import OURS, RATIO, Side
from tests.bench.peers.pairs import PEERS, rows_with_peers
from tests.bench.peers.spark_program import COLUMNS
from tests.bench.peers.spark_source import LOCK
from tests.bench.peers.watching import PeerRun, arrival_times
from tests.bench.rows import all_rows
from tests.bench.topics import SCHEMA, Load
from tests.docs.pages import ROOT, text_of

PAGE = text_of(last_release.PAGE)
OF_OURS = Side(
    row="file-sink",
    who=OURS,
    about="values as lines",
    records=1_000_000,
    copy_rate=300_000,
    run_rate=200_000,
    cpu=2.5,
    peak_mb=800,
    mb_per_million=201.0,
    load=1.5,
    commit="0123456789",
    date="2026-11-29",
    machine="2 x CPU",
    versions="Spark 4.2.0",
)
OF_PEER = replace(OF_OURS, who="A peer", copy_rate=100_000, run_rate=100_000, cpu=5.0, peak_mb=400)


def test_the_table_shows_the_kept_figures():
    kept = figures.read()
    assert figures.with_table(PAGE, kept) == PAGE
    assert set(kept) <= set(PEERS)


def test_each_peer_has_a_row_and_is_on_the_page():
    rows = rows_with_peers(all_rows(1000))
    assert [row.name for row in rows] == list(PEERS)
    section = PAGE.split("## Side by side")[1].split("\n## ")[0]
    assert [name for name in PEERS if f"`{name}`" not in section] == []


def test_a_pair_is_three_lines_the_last_with_the_ratios():
    ours, theirs, ratios = figures.cells((OF_OURS, OF_PEER))
    assert ours == ["file-sink", OURS, "300,000", "200,000", "2.50", "800", "201.0"]
    assert theirs == ["", "A peer", "100,000", "100,000", "5.00", "400", "201.0"]
    assert ratios == ["", RATIO, "3.00", "2.00", "0.50", "2.00", "1.00"]
    assert len(figures.HEAD) == len(ours)


def test_a_figure_of_zero_has_no_ratio():
    assert figures.cells((OF_OURS, replace(OF_PEER, copy_rate=0)))[2][2] == "-"


def test_kept_figures_replace_those_of_their_row_and_the_table(tmp_path):
    page, path = tmp_path / "page.md", tmp_path / "figures.csv"
    page.write_text(f"# Page\n\n<!-- peers -->\n{figures.NONE_KEPT}<!-- end -->\n\nAfter.\n")
    mirror = replace(OF_OURS, row="mirror", records=500), replace(OF_PEER, row="mirror", records=500)
    figures.keep([(OF_OURS, OF_PEER), mirror], path, page)
    figures.keep([(replace(OF_OURS, copy_rate=250_000), OF_PEER)], path, page)

    kept = figures.read(path)
    assert list(kept) == ["file-sink", "mirror"]
    assert kept["mirror"] == mirror
    assert kept["file-sink"][0].copy_rate == 250_000
    assert page.read_text() == (
        "# Page\n\n<!-- peers -->\n"
        "| row | who copies | records/s (copy) | records/s (run) | CPU s per million | peak MB | MB per million |\n"
        "|---|---|---|---|---|---|---|\n"
        "| `file-sink`: values as lines | airflow_connect | 250,000 | 200,000 | 2.50 | 800 | 201.0 |\n"
        "|  | A peer | 100,000 | 100,000 | 5.00 | 400 | 201.0 |\n"
        "|  | **ours / theirs** | **2.50** | **2.00** | **0.50** | **2.00** | **1.00** |\n"
        "| `mirror`: values as lines | airflow_connect | 300,000 | 200,000 | 2.50 | 800 | 201.0 |\n"
        "|  | A peer | 100,000 | 100,000 | 5.00 | 400 | 201.0 |\n"
        "|  | **ours / theirs** | **3.00** | **2.00** | **0.50** | **2.00** | **1.00** |\n"
        "\nCommit 0123456789, 2026-11-29, 2 x CPU, Spark 4.2.0: 500 to 1,000,000 records, load average 1.5 to 1.5.\n"
        "<!-- end -->\n\nAfter.\n"
    )


def test_a_file_of_lines_is_counted_record_by_record(tmp_path):
    path = tmp_path / "lines.txt"
    lines = [value + b"\n" for _, value, _ in Load(2, 1, 4).rows()]
    path.write_bytes(b"".join(lines))
    assert check_lines(path, 4) == (4 * 201, "")
    path.write_bytes(b"".join([lines[0], lines[0], lines[1], lines[2][:100], lines[3]]))
    assert check_lines(path, 4)[1] == "2 missing, 1 there twice, 1 broken or unknown"
    path.write_bytes(b"".join(lines) + b"rest")
    assert check_lines(path, 4)[1] == "1 broken or unknown"
    path.write_bytes(b"")
    assert check_lines(path, 4)[1] == "4 missing"


def test_a_copy_that_never_ends_fails_with_what_was_written(monkeypatch):
    monkeypatch.setattr("tests.bench.peers.watching.LONGEST_S", 0.2)
    with pytest.raises(RuntimeError, match=r"^FileStreamSink has written 3 of 4 in 0 s\.$"):
        arrival_times(lambda: 3, 4, "FileStreamSink")


def test_arrival_is_from_the_first_record_to_the_last():
    counts = iter([0, 1, 4])
    first, last = arrival_times(lambda: next(counts), 4, "")
    assert 0 < first < last


class Scripted:
    """A bench whose rows take what is given, and a peer that does the same."""

    def __init__(self, problems: list[str]) -> None:
        self.problems, self.done = problems, list[str]()
        self.places = None

    def warm_up(self, rows):
        self.done.append("warm up")

    def measure(self, row):
        self.done.append(f"ours {row.load.records}")
        return Measured(row.name, row.load.records, 2.0, 1.0, 500, 1000, 3.0, 0.0, 0.0, 64, 1, 200.0, 0.5)

    def copy(self, row):
        self.done.append(f"theirs {row.load.records}")
        problem = self.problems.pop(0) if self.problems else ""
        return PeerRun(4.0, 8.0, 6.0 * row.load.records / 1e6, 32 << 20, row.load.records * 200, problem)


@pytest.fixture
def measure(monkeypatch, tmp_path):
    """Compare `file-sink` with a scripted peer; gives what was done, the runs, what was kept and the result."""

    def compare(problems, repeat):
        bench, written, kept = Scripted(problems), [], []
        peer = replace(PEERS["file-sink"], name="A peer", start=lambda places: nullcontext(bench.copy))
        monkeypatch.setitem(side_by_side.PEERS, "file-sink", peer)
        monkeypatch.setattr(side_by_side, "write_runs", lambda runs, suffix: written.extend(runs))
        monkeypatch.setattr(figures, "keep", kept.extend)
        rows = [row for row in all_rows(800_000) if row.name == "file-sink"]
        status = side_by_side.measure_pairs(bench, rows, repeat, keep=True)
        return bench.done, written, kept, status

    return compare


def test_both_are_warm_and_take_turns(measure, capsys):
    done, written, kept, status = measure([], 2)
    turns = ["ours 800000", "theirs 500000", "theirs 800000", "ours 800000", "theirs 800000"]
    assert done == ["warm up", "ours 500000", *turns]
    assert status == 0
    assert [run.who for run in written] == [OURS, OURS, "A peer", "A peer"]
    (pair,) = kept
    assert (pair[1].copy_rate, pair[1].run_rate, pair[1].cpu, pair[1].peak_mb) == (200_000, 100_000, 6.0, 32)
    assert "ours / theirs" in capsys.readouterr().out


def test_a_lost_record_of_a_peer_fails_and_is_not_kept(measure, capsys):
    _, written, kept, status = measure(["", "1 missing"], 1)
    assert (status, kept) == (1, [])
    assert written[-1].problem == "1 missing"
    assert "  FAILED file-sink, A peer: 1 missing\n" in capsys.readouterr().out


def test_a_lost_record_of_the_warm_up_ends_the_run(measure):
    with pytest.raises(RuntimeError, match=r"The warm-up of A peer failed: 1 missing"):
        measure(["1 missing"], 1)


def test_jars_of_the_kafka_source_are_for_the_locked_spark():
    version = LOCK.rpartition("-")[2]
    assert f"\npyspark=={version} " in text_of(ROOT / "requirements.lock")
    jars = (ROOT / "tests" / "devstack" / "locks" / f"{LOCK}.lock").read_text()
    assert f"spark-sql-kafka-0-10_2.13:{version} " in jars


def test_spark_reads_the_fields_of_the_schema():
    fields = [field["field"] for field in json.loads(SCHEMA)["fields"]]
    assert [column.split()[0] for column in COLUMNS.split(", ")] == fields
