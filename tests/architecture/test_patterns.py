"""Regular expressions take time that grows with the length of the text, not with its square.

Values of configurations, headers and messages may have a megabyte; one that took minutes would stop a worker.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import airflow_connect

PACKAGE = Path(airflow_connect.__file__).parent
USE = r"\b%s\.(search|findall|finditer|sub|split|match|fullmatch)\("
PARTS = [
    *"nA01_-.:,;/?*$%@+=({[<&' \t\n\\\"`é",
    *("a.", "0.", "1e", "e+", "--", "->", "//", "/*", "/* ", "://", "a://", "a://b:", "a:", "a=", "a ="),
    *("?a=b", ";a", "&a"),
    *("${", "${a", "${a:", "${a:b:", "a,", " ,", "-D", "-Da", "-Da=", "password", "password ", 'token="', "secret ='"),
    *('\\"', "\\\\", '="', "a='b", "(a", "a(", "x=1;", "T1:", "{ ", '{"schema"', " at "),
]  # fmt: skip
SHORT, LONG = 1_000, 8_000


def uses() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """Place, pattern and method of every use of a pattern that a module has compiled."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if "re.compile(" in text:
            module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for name, value in vars(importlib.import_module(module)).items():
                if isinstance(value, re.Pattern):
                    yield from ((f"{module}.{name}", value, method) for method in set(re.findall(USE % name, text)))
                elif isinstance(getattr(value, "__self__", None), re.Pattern):
                    yield f"{module}.{name}", value.__self__, value.__name__


def seconds(method: Callable[[Any], Any], text: Any) -> float:
    """The CPU time of one call."""
    began = time.process_time()
    method(text)
    return time.process_time() - began


def is_square(method: Callable[[Any], Any], made: Callable[[int], Any]) -> bool:
    """Whether eight times the text takes much more than eight times as long: 64 times with the square."""
    long = made(LONG)
    if seconds(method, long) < 0.005:
        return False
    long_s, short_s = (min(seconds(method, text) for _ in range(3)) for text in (long, made(SHORT)))
    return long_s > 0.005 and long_s > 24 * short_s


def repeated(pattern: re.Pattern[Any], method: str) -> Iterator[str]:
    """The parts which make the pattern slow, if they are repeated."""
    read: Callable[[Any], Any] = getattr(pattern, {"finditer": "findall", "sub": "findall"}.get(method, method))
    for part in PARTS:
        for end in ("", "!"):

            def made(size: int, part: str = part, end: str = end) -> Any:
                text = part * (size // len(part)) + end
                return text.encode() if isinstance(pattern.pattern, bytes) else text

            if is_square(read, made):
                yield part


def test_every_pattern_reads_a_long_text_in_time_that_grows_with_its_length() -> None:
    slow = {f"{place}.{method}": next(repeated(pattern, method), None) for place, pattern, method in uses()}
    assert {place: part for place, part in slow.items() if part is not None} == {}
    assert {"airflow_connect.api.config.secrets._JAVA_OPTION.findall"} < slow.keys()
    assert {"airflow_connect.converters.json.text._OVERFLOW.search"} < slow.keys()


def test_a_pattern_that_reads_each_word_again_and_again_is_found() -> None:
    assert is_square(re.compile(r"\w+:").findall, lambda size: "n" * size)
    assert not is_square(re.compile(r"(?<!\w)\w++:").findall, lambda size: "n" * size)
