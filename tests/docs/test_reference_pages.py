from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.reference_pages import PAGES, PYTHON_MODULE, Page, main, render

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_reference_page_is_up_to_date(page: Page) -> None:
    assert (ROOT / page.file).read_text("utf-8") == render(page), f"run: python -m {PYTHON_MODULE}"


def test_main_writes_every_page_below_the_given_folder(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert all((tmp_path / page.file).is_file() for page in PAGES)


def test_main_asked_for_help_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "Write the reference pages" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_reference_page_table_cells_escape_markdown_outside_code() -> None:
    page = render(PAGES[0])
    assert "`connect-<name>`" in page
    assert "| `s3.secret" not in page
    assert "## Accepted without effect" in page


def test_import_of_configuration_loads_nothing_but_the_standard_library() -> None:
    code = (
        "import sys\n"
        "import airflow_connect.config.resolved.loading, airflow_connect.connectors.files.s3.config as c\n"
        "c.S3SinkConfig.config_def()\n"
        "print([m for m in sys.modules if m.split('.')[0] not in sys.stdlib_module_names"
        " and not m.startswith(('airflow_connect', '_', 'sitecustomize'))])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"
