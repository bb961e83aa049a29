"""The direction of imports, as the contracts in pyproject.toml draw it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-logo", "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


def test_imports_of_the_package_keep_all_contracts():
    checked = lint_imports(REPOSITORY)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_contracts_notice_what_they_forbid(tmp_path):
    """Planted violations are found, each by its contract: the contracts are not silently empty."""
    (tmp_path / "pyproject.toml").write_text((REPOSITORY / "pyproject.toml").read_text())
    for source in sorted((REPOSITORY / "airflow_connect").rglob("*.py")):
        copy = tmp_path / source.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("")
    plant(tmp_path, "runtime/executor/__init__.py", "import airflow_connect.exactly_once.commit")
    plant(tmp_path, "kafka/__init__.py", "import airflow_connect.runtime")
    plant(tmp_path, "stores/__init__.py", "import airflow")
    plant(tmp_path, "formats/__init__.py", "import pyspark.sql")
    plant(tmp_path, "planning/__init__.py", "import confluent_kafka")
    plant(tmp_path, "api/__init__.py", "import airflow_connect.config.keys")
    plant(tmp_path, "hive/tables.py", "import airflow_connect.hive.types")
    plant(tmp_path, "hive/types.py", "import airflow_connect.hive.tables")
    plant(tmp_path, "sensors/__init__.py", "import airflow_connect.triggers")
    plant(tmp_path, "triggers/__init__.py", "import airflow_connect.sensors")
    plant(tmp_path, "unplaced/__init__.py", "")
    said = lint_imports(tmp_path).stdout
    for name in (
        "An executor cannot commit",
        "Imports go down the layers",
        "Contracts below keys below configurations",
        "Nothing imports in circles",
        "Below the top layer nothing knows Airflow",
        "Only the engine speaks to Spark",
        "Only the Kafka package speaks to Kafka",
    ):
        assert f"{name} BROKEN" in said, said
    assert "unplaced" in said
    circles = said[said.rindex("Nothing imports in circles") :]
    assert "airflow_connect.\n" in circles and "airflow_connect.hive.\n" in circles, circles


def plant(folder: Path, module: str, text: str) -> None:
    path = folder / "airflow_connect" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
