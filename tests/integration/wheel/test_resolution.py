"""The extras resolve beside official providers. Nothing is installed.

Airflow publishes constraint files, but not on package indexes. So the versions of the lock stand for them: Airflow and
the official providers in it were resolved together, without constraints of ours but for pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.integration.wheel.conftest import LOCK

EXTRAS = "airflow,spark,hdfs,metrics,json-schema"
OTHERS = ("amazon", "apache-kafka", "apache-spark", "celery", "cncf-kubernetes", "common-io", "http", "openlineage")
PROVIDERS = [f"apache-airflow-providers-{name}" for name in OTHERS]
LOCKED = re.findall(r"^([a-z0-9-]+)==([^ ;]+)", LOCK.read_text(), re.MULTILINE)
Resolve = Callable[..., dict[str, str]]


@pytest.mark.budget(30)  # Metadata of some 200 distributions, from uv's cache or the index.
def test_extras_resolve_with_the_locked_airflow_and_providers(resolve: Resolve) -> None:
    airflow = f"apache-airflow=={dict(LOCKED)['apache-airflow']}"
    found = resolve(EXTRAS, [airflow, *PROVIDERS], "-c", str(LOCK))
    assert {name for name in PROVIDERS if name not in found} == set()
    known = {name for name, _ in LOCKED}  # Some have several versions, for several versions of Python.
    assert {pin for pin in found.items() if pin[0] in known} - set(LOCKED) == set()


@pytest.mark.budget(30)
def test_extras_resolve_with_the_newest_airflow_of_the_index(resolve: Resolve) -> None:
    newest = resolve("", ["apache-airflow>=3,<4"])["apache-airflow"]
    found = resolve(EXTRAS, ["apache-airflow>=3,<4", *PROVIDERS])
    assert found["apache-airflow"] == newest
    # The two have files in common: other versions side by side break every Python worker of Spark.
    assert found["pyspark"] == found["pyspark-client"]
