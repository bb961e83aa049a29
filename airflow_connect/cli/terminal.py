"""Where output goes: streams, colours, symbols and width."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from airflow_connect.api.config_references import ResolvedReferences
from airflow_connect.api.errors import InternalError
from airflow_connect.cli.private_streams import NoiseFilter
from airflow_connect.runtime.internal_errors import internal_error, traceback_of
from airflow_connect.runtime.presentation import error_lines
from airflow_connect.runtime.redaction import Redactor

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ASCII = str.maketrans({"✓": "+", "✗": "x", "⚠": "!", "→": ">", "━": "=", "╸": "-", "·": ".", "…": "."})
MIN_COLUMNS, FALLBACK_COLUMNS = 40, 80


class Terminal:
    """stdout for results, stderr for progress and errors.

    Attributes:
        as_json: stdout is for one envelope only.
        verbose: logs and tracebacks are wanted.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        *,
        as_json: bool = False,
        verbose: bool = False,
        noise: NoiseFilter | None = None,
    ) -> None:
        """Use the given streams, else the process's own; `noise` goes to stderr beside them."""
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.as_json = as_json
        self.verbose = verbose
        self._noise = noise
        self._references = ResolvedReferences()
        self._secrets: frozenset[str] = frozenset()
        self._redact = Redactor(())

    def hide(self, references: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        """From now on show references to config providers instead of the values that they stand for.

        Args:
            references: what they stand for.
            secrets: values of configurations, which are hidden as well.
        """
        self._references = ResolvedReferences({**self._references.values, **references})
        self._secrets = self._secrets.union(secrets)
        self._redact = Redactor(self._secrets, self._references)
        if self._noise is not None and (references or self._secrets):
            self._noise.start(self._redact)

    def defect(self, error: Exception) -> InternalError:
        """Print the traceback of an unexpected exception; return the error to report."""
        self.note(traceback_of(error, self._redact))
        return internal_error(error, self._redact)

    @property
    def is_live(self) -> bool:
        """Whether stderr is a terminal on which a line can be drawn again."""
        return self.err.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def columns(self) -> int:
        """Width of the terminal in characters."""
        try:
            columns = os.get_terminal_size(self.err.fileno()).columns
        except (OSError, ValueError):  # no terminal, or a stream without a descriptor
            columns = FALLBACK_COLUMNS
        return max(MIN_COLUMNS, columns)

    def style(self, text: str, *styles: str, stream: TextIO | None = None) -> str:
        """Coloured text where the stream shows colours; NO_COLOR is obeyed (https://no-color.org)."""
        target = stream or self.out
        if not target.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return text
        return f"\033[{';'.join(_STYLES[style] for style in styles)}m{text}\033[0m"

    def hand_over_stdout(self) -> Callable[[bytes], None]:
        """Give stdout to the lines of a sink, and nothing else: results go to stderr from now on.

        Returns:
            What writes to it. Unbuffered, so that a pipe that was closed is seen by the write that meets it.
        """
        self.out, out = self.err, self.out

        def write(data: bytes) -> None:
            out.flush()
            with memoryview(data) as rest:
                done = 0
                while done < len(rest):
                    done += os.write(out.fileno(), rest[done:])

        return write

    def print(self, text: str = "") -> None:
        """A line of the result."""
        self._write(self.out, text + "\n")

    def note(self, text: str = "") -> None:
        """A line about the progress."""
        self._write(self.err, text + "\n")

    def draw(self, text: str) -> None:
        """Raw text to stderr, for lines that are drawn again."""
        self._write(self.err, text)

    def error(self, error: Mapping[str, Any]) -> None:
        """A failure: code, key, message and what to do."""
        for number, line in enumerate(error_lines(error)):
            style = ("red", "bold") if number == 0 else ("cyan",) if line.startswith("  →") else None
            self.note(self.style(line, *style, stream=self.err) if style else line)

    def _write(self, stream: TextIO, text: str) -> None:
        if stream is self.err:
            # Results are made of names and counts; among their words a value would be replaced by chance only.
            text = self._redact(text)
        encoding = stream.encoding or "utf-8"
        if not encoding.lower().startswith("utf"):
            text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        stream.write(text)
        stream.flush()
