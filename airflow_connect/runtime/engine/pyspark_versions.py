"""pyspark and pyspark-client install the same files: with different versions, every Python worker fails.

pip does not see the conflict, and installs the newest version of each.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from airflow_connect.errors import ConfigError

CLASSIC, CLIENT = "pyspark", "pyspark-client"


class PysparkVersionsError(ConfigError):
    """pyspark and pyspark-client have different versions; the suggestion says how to install one of both."""

    code = "spark.two_versions"


def ensure_one_version() -> None:
    """Check the installed packages.

    Raises:
        PysparkVersionsError: both are installed, with different versions.
    """
    classic, client = version_of(CLASSIC), version_of(CLIENT)
    if classic and client and classic != client:
        # A release of pyspark may come before that of pyspark-client, so only the lower version is sure to have both.
        both = min(classic, client, key=_numbers)
        raise PysparkVersionsError(
            f"pyspark {classic} and pyspark-client {client} install the same files, so every Python worker fails.",
            suggestion=f'Install one version of both: pip install "{CLASSIC}=={both}" "{CLIENT}=={both}"',
        )


def version_of(package: str) -> str:
    """The version that is installed; "": none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _numbers(text: str) -> list[int]:
    return [int(part) if part.isdigit() else 0 for part in text.split(".")]
