"""Output: drawn by rich on a terminal; everywhere else plain lines without colours, frames or wrapping."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.cli.blocks import Block, line, plain_lines
from airflow_connect.cli.private_streams import NoiseFilter
from airflow_connect.errors import InternalError
from airflow_connect.runtime.reporting.internal_errors import internal_error, traceback_of
from airflow_connect.runtime.reporting.presentation import error_lines
from airflow_connect.runtime.reporting.redaction import Redactor
from airflow_connect.runtime.reporting.texts import spelled_out

if TYPE_CHECKING:
    from airflow_connect.cli.drawing import TerminalConsole

_ASCII = str.maketrans({"✓": "+", "✗": "x", "⚠": "!", "→": ">", "━": "=", "╸": "-", "·": ".", "…": "."})
FALLBACK_COLUMNS = 80
_CLEAR = "\x1b[H\x1b[2J"
"""Cursor to the upper left corner, then clear the screen (ECMA-48)."""


class Terminal:
    """stdout for results, stderr for progress and errors.

    Attributes:
        as_json: stdout is for one envelope only.
        verbose: logs and tracebacks are wanted.
        drawn: removes the line that is redrawn; closed by the code that began it, or on a signal.
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
        """Use the given streams, else those of the process; `noise` goes to stderr along with them."""
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.as_json = as_json
        self.verbose = verbose
        self._noise = noise
        self._references = ResolvedReferences()
        self._secrets: frozenset[str] = frozenset()
        self._redact = Redactor(())
        self._made: dict[TextIO, TerminalConsole] = {}
        self.drawn = ExitStack()

    def hide(self, references: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        """From now on show references to config providers instead of their values.

        Args:
            references: their values.
            secrets: values of configurations that are hidden as well.
        """
        self._references = ResolvedReferences({**self._references.values, **references})
        self._secrets = self._secrets.union(secrets)
        self._redact = Redactor(self._secrets, self._references)
        if self._noise is not None and (references or self._secrets):
            self._noise.start(self._redact)

    def defect(self, error: Exception) -> InternalError:
        """Print the traceback of an unexpected exception; return the error to report."""
        self.note(line(traceback_of(error, self._redact), breaks=False))
        return internal_error(error, self._redact)

    @property
    def is_live(self) -> bool:
        """Whether a line on stderr can be redrawn; the logs of a verbose command would break it."""
        return is_terminal(self.err) and not self.verbose

    def console(self) -> TerminalConsole:
        """Rich's console on stderr; only if `is_live`."""
        return self._consoles(self.err)

    @property
    def columns(self) -> int:
        """Width of stderr in characters."""
        return self._consoles(self.err).width if is_terminal(self.err) else FALLBACK_COLUMNS

    def hand_over_stdout(self) -> Callable[[bytes], None]:
        """Reserve stdout for the lines of a sink: results go to stderr from now on.

        Returns:
            The function that writes to it. It is unbuffered, so a write to a closed pipe fails immediately.
        """
        self.out, out = self.err, self.out

        def write(data: bytes) -> None:
            out.flush()
            with memoryview(data) as rest:
                done = 0
                while done < len(rest):
                    done += os.write(out.fileno(), rest[done:])

        return write

    def clear(self) -> None:
        """Begin a new page of the result, if a person watches it."""
        if is_terminal(self.out):
            self.out.write(_CLEAR)
        else:
            self.print()

    def print(self, block: Block = "") -> None:
        """Print a part of the result."""
        self._write(self.out, block)

    def note(self, block: Block = "") -> None:
        """Print a part of the progress, or of an error."""
        self._write(self.err, block)

    def error(self, error: Mapping[str, Any]) -> None:
        """Print a failure: code, key, message and what to do."""
        head, message, *suggestion = error_lines(error)
        self.note(line((head, "bold red")))
        self.note(line(message.strip(), indent=2))
        for text in suggestion:
            self.note(line((text.strip(), "cyan"), indent=2, hang=2))

    def cleaned(self, text: str, stream: TextIO) -> str:
        """The text without secrets, and with control sequences of terminals escaped."""
        if stream is self.err:
            # Results consist of names and counts; a value would be replaced in their words only by chance.
            text = self._redact(text)
        text = spelled_out(text)
        encoding = stream.encoding or "utf-8"
        if not encoding.lower().startswith("utf"):
            text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        return text

    def _write(self, stream: TextIO, block: Block) -> None:
        if is_terminal(stream):
            from airflow_connect.cli.drawing import draw

            draw(self._consoles(stream), block, lambda text: self.cleaned(text, stream))
        else:
            stream.write("".join(f"{self.cleaned(text, stream)}\n" for text in plain_lines(block)))
        stream.flush()

    def _consoles(self, stream: TextIO) -> TerminalConsole:
        from airflow_connect.cli.drawing import TerminalConsole

        return self._made.setdefault(stream, TerminalConsole(stream))


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal that supports more than plain lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"
