"""Text that stands alone as a statement says nothing to anybody: it is the lost end of a broken-up sentence."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "airflow_connect"


def lost_texts(source: str) -> list[str]:
    """One-line strings that are statements. Documentation of a constant is one too, and written in triple quotes."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    texts = [node.value for node in statements if isinstance(node.value, ast.Constant)]
    written = [ast.get_source_segment(source, text) or "" for text in texts if isinstance(text.value, str)]
    return [text for text in written if '"""' not in text]


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE).with_suffix(""))
)
def test_module_has_no_text_as_a_statement(path: Path) -> None:
    assert lost_texts(path.read_text("utf-8")) == []


def test_lost_end_of_a_sentence_is_found() -> None:
    code = '"""Doc."""\nadvice = "this, and not"\n" both."\nLIMIT = 3\n"""Most of them."""\n'
    assert lost_texts(code) == ['" both."']
