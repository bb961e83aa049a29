"""What a terminal shows and what a pipe gets: drawn by rich there, plain and stable here."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.live_progress import progress_of
from airflow_connect.cli.steps import Step
from airflow_connect.cli.terminal import Terminal
from airflow_connect.documentation import error_url
from airflow_connect.runtime.reporting.texts import Table
from tests.support.processes.drivers import PROJECT, fake_driver_env

SECRET = "hunter22-of-nobody"
HIDE_CURSOR = "\033[?25l"
STYLES = re.compile(r"\033\[[0-9;]*m")
LONG = Table(["TOPIC", "RECORDS"], [["a" * 60, "123,456,789"], ["b" * 9, "1"]], "<>", indent=2)
MANY = Table(["FROM", "STAGE", "VALUE"], [["orders-2@41", "VALUE_CONVERTER", "x" * 40]] * 2, "<<<", indent=2)


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def real_terminal(columns: int) -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """A stream on a pseudo terminal of that width, and what was written to it when all is over."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.extend(_everything(leader)))
    reader.start()
    stream = os.fdopen(follower, "w", encoding="utf-8")

    def shown() -> str:
        stream.close()
        reader.join()
        return b"".join(seen).decode().replace("\r\n", "\n")

    try:
        yield stream, shown
    finally:
        shown()
        os.close(leader)


def _everything(leader: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other side was closed
            return
        if not data:
            return
        yield data


def drawn(block: Block, columns: int, secrets: tuple[str, ...] = ()) -> str:
    """A block on stderr of a terminal of that width, without styles."""
    with real_terminal(columns) as (stream, shown):
        terminal = Terminal(io.StringIO(), stream)
        terminal.hide({}, secrets)
        terminal.note(block)
        return STYLES.sub("", shown())


def piped(block: Block) -> str:
    out = io.StringIO()
    Terminal(out, io.StringIO()).print(block)
    return out.getvalue()


@pytest.mark.parametrize(("name", "value"), [("COLUMNS", "20"), ("FORCE_COLOR", "1"), ("TTY_COMPATIBLE", "1")])
def test_pipe_gets_whole_lines_without_colours_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    sentence = "word " * 100
    assert piped(line(("✓ ", "green"), sentence, indent=2, hang=2)) == f"  ✓ {sentence}\n"
    assert piped(LONG) == f"  TOPIC{' ' * 57}    RECORDS\n  {'a' * 60}  123,456,789\n  bbbbbbbbb{' ' * 53}          1\n"


def test_terminal_breaks_lines_at_words_and_hangs_what_follows() -> None:
    shown = drawn(line(("✓ ", "green"), "orders: " + "word " * 20, indent=2, hang=2), 40)
    first, *rest = shown.splitlines()
    assert first.startswith("  ✓ orders: word")
    assert all(text.startswith("    word") for text in rest)
    assert max(map(len, shown.splitlines())) <= 40


def test_what_is_to_be_copied_is_not_broken() -> None:
    command = "export AWS_ACCESS_KEY_ID=" + "x" * 100
    assert drawn(line(command, indent=2, breaks=False), 40) == f"  {command}\n"


def test_table_too_wide_folds_its_widest_column_only() -> None:
    assert [text.rstrip() for text in drawn(LONG, 50).splitlines()] == [
        f"  TOPIC{' ' * 36}RECORDS",
        f"  {'a' * 35}  123,456,789",
        f"  {'a' * 25}",
        f"  bbbbbbbbb{' ' * 26}            1",
    ]


def test_table_far_too_wide_has_a_line_for_each_cell() -> None:
    card = ["  FROM   orders-2@41", "  STAGE  VALUE_CONVERTER", f"  VALUE  {'x' * 21}", f"         {'x' * 19}"]
    assert [text.rstrip() for text in drawn(MANY, 30).splitlines()] == [*card, "", *card]


@given(
    st.lists(st.lists(st.text(max_size=30), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(20, 120),
    st.text("<>", min_size=3, max_size=3),
)
def test_table_of_any_text_fits_any_width(rows: list[list[str]], columns: int, align: str) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        Terminal(io.StringIO(), stream).note(Table(["A", "B", "C"], rows, align))
    text = STYLES.sub("", stream.getvalue())
    assert "\033" not in text
    assert all(cell_len(shown.rstrip()) <= columns for shown in text.split("\n"))


def test_markup_and_control_characters_are_shown_and_not_obeyed() -> None:
    text = "[red]orders[/red] \033[31m :smile: \x07 [/] http://x \x9b \u202e"
    expected = "[red]orders[/red] \\x1b[31m :smile: \\x07 [/] http://x \\x9b \\u202e\n"
    assert drawn(text, 120) == expected
    assert piped(text) == expected
    table = Table(["A"], [[text]], "<")
    assert drawn(table, 120).splitlines()[1].rstrip() == piped(table).splitlines()[1] == expected.strip()


@pytest.mark.parametrize("columns", [20, 30, 40, 120])
def test_secret_is_hidden_also_where_a_line_would_break_inside_of_it(columns: int) -> None:
    shown = drawn(line(f"it failed near {SECRET}, again {SECRET}"), columns, (SECRET,))
    assert SECRET[:8] not in shown.replace("\n", "")
    assert shown.replace("\n", " ").count("[hidden]") == 2
    assert SECRET[:8] not in drawn(Table(["A", "B"], [[SECRET, "x" * 50]], "<<"), columns, (SECRET,))


def test_json_on_a_terminal_stays_one_line() -> None:
    envelope = json.dumps({"key": ["value with words"] * 50})
    assert drawn(line(envelope, breaks=False), 40) == envelope + "\n"


def test_terminal_without_these_letters_gets_others() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    stream.isatty = lambda: True  # type: ignore[method-assign]
    terminal = Terminal(io.StringIO(), stream)
    with progress_of(terminal) as progress:
        progress({"event": "phase", "phase": "copy", "total": 9})
        progress({"event": "progress", "phase": "copy", "done": 5, "total": 9})
        progress({"event": "phase", "phase": "commit"})
        progress({"event": "warning", "message": "ö"})
    terminal.error({"code": "a.b", "message": "Bad.", "suggestion": "Do.", "configPath": ""})
    shown = STYLES.sub("", raw.getvalue().decode("ascii"))
    assert "+ copy     --------" in shown
    assert "! ?" in shown
    assert shown.endswith(f"x a.b\n  Bad.\n  > Do.\n  {error_url('a.b')}\n")


def test_cursor_is_never_hidden_as_a_killed_program_could_not_show_it_again() -> None:
    with real_terminal(80) as (stream, shown):
        terminal = Terminal(io.StringIO(), stream)
        with progress_of(terminal) as progress:
            progress({"event": "phase", "phase": "copy", "total": 9})
        with Step(terminal, "Kafka") as step:
            step.fact = "127.0.0.1:9092"
        text = shown()
    assert HIDE_CURSOR not in text
    assert "✓ Kafka" in STYLES.sub("", text)


def test_no_color_leaves_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with real_terminal(80) as (stream, shown):
        terminal = Terminal(io.StringIO(), stream)
        terminal.note(line(("✓ ", "green"), ("bold", "bold red")))
        text = shown()
    colours = [code for codes in re.findall(r"\033\[([0-9;]*)m", text) for code in codes.split(";")]
    assert not [code for code in colours if code[:1] in ("3", "4") or code[:1] == "9"]


def test_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with real_terminal(40) as (stream, shown):
        terminal = Terminal(io.StringIO(), stream)
        assert not terminal.is_live
        terminal.note(line(("word " * 20, "red")))
        assert shown() == "word " * 20 + "\n"


def test_verbose_command_draws_no_line_again() -> None:
    with real_terminal(80) as (stream, _):
        assert Terminal(io.StringIO(), stream).is_live
        assert not Terminal(io.StringIO(), stream, verbose=True).is_live


def test_piped_command_does_not_load_rich(worker: Path, connector: Callable[..., Path], tmp_path: Path) -> None:
    code = f"""
import sys
from airflow_connect.cli.main import main
main(["standalone", {str(worker)!r}, {str(connector("orders"))!r}])
open({str(tmp_path / "loaded")!r}, "w").write(str("rich" in sys.modules))
"""
    env = {**os.environ, **fake_driver_env()}
    subprocess.run([sys.executable, "-c", code], env=env, cwd=PROJECT, capture_output=True, check=True)
    assert (tmp_path / "loaded").read_text() == "False"


def test_signal_takes_the_drawn_line_away(worker: Path, connector: Callable[..., Path], tmp_path: Path) -> None:
    paths = {name: str(tmp_path / name) for name in ("pids", "stopped", "committed")}
    os.mkfifo(tmp_path / "pids")
    command = [sys.executable, "-m", "airflow_connect.cli", "standalone", worker, connector("a", fake="hang", **paths)]
    with real_terminal(80) as (stream, shown):
        env = {**os.environ, **fake_driver_env()}
        program = subprocess.Popen(command, env=env, stdout=stream, stderr=stream)
        with (tmp_path / "pids").open() as told:
            assert told.readline()
        program.send_signal(signal.SIGINT)
        assert program.wait(20) == 130
        text = shown()
    assert text.endswith("\nInterrupted. What was committed stays; the next run resumes after it.\n")
    assert HIDE_CURSOR not in text


def test_a_watched_page_begins_at_the_top_of_a_terminal_and_after_a_blank_line_of_a_pipe() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    for out, expected in ((Screen(), "\033[H\033[2J"), (io.StringIO(), "\n")):
        Terminal(out, io.StringIO()).clear()
        assert out.getvalue() == expected
