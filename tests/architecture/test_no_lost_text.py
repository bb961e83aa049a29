"""Text that stands alone as a statement says nothing to anybody: it is the lost end of a broken-up sentence."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "airflow_connect"


def lost_texts(source: str) -> list[str]:
    """One-line strings that are statements. Documentation of a constant is one too, and written in triple quotes."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    texts = [node.value for node in statements if isinstance(node.value, ast.Constant)]
    lines = source.encode().split(b"\n")
    # `ast.get_source_segment` would split the whole source for each of them, so only those that are found get it.
    odd = [text for text in texts if isinstance(text.value, str) and not _is_documentation(lines, text)]
    return [ast.get_source_segment(source, text) or "" for text in odd]


def _is_documentation(lines: list[bytes], text: ast.Constant) -> bool:
    return lines[text.lineno - 1][text.col_offset :].lstrip(b"rRuU").startswith(b'"""')


def test_no_module_has_text_as_a_statement() -> None:
    modules = sorted(PACKAGE.rglob("*.py"))
    found = {str(path.relative_to(PACKAGE)): lost_texts(path.read_text("utf-8")) for path in modules}
    assert found and {name: texts for name, texts in found.items() if texts} == {}


def test_lost_end_of_a_sentence_is_found() -> None:
    code = '"""Doc."""\nadvice = "this, and not"\n" both."\nLIMIT = 3\n"""Most of them."""\n'
    assert lost_texts(code) == ['" both."']
