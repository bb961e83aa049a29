"""Layer 8: conformance suites for plugins. A plugin author subclasses one in a few lines. Needs pytest.

`SinkConformance` and `SourceConformance` run a connector on a real Kafka broker, in real processes that they kill.
`ConverterConformance` and `TransformationConformance` need only the class. `StoreConformance` needs the store's
server, if it has one. Add the fixtures to the `conftest.py` of your project:

    pytest_plugins = ["airflow_connect.testing.fixtures"]
"""

from __future__ import annotations

import pytest

# Before the suites are imported, so that their failed assertions show values.
pytest.register_assert_rewrite(
    "airflow_connect.testing.suites.connector_suite",
    "airflow_connect.testing.suites.sink_suite",
    "airflow_connect.testing.suites.source_suite",
    "airflow_connect.testing.suites.store_suite",
    "airflow_connect.testing.suites.converter_suite",
    "airflow_connect.testing.suites.transformation_suite",
)

from airflow_connect.testing.suites.converter_suite import ConverterConformance  # noqa: E402
from airflow_connect.testing.suites.sink_suite import SinkConformance  # noqa: E402
from airflow_connect.testing.suites.source_suite import SourceConformance  # noqa: E402
from airflow_connect.testing.suites.store_suite import StoreConformance  # noqa: E402
from airflow_connect.testing.suites.transformation_suite import TransformationConformance  # noqa: E402

__all__ = [
    "ConverterConformance",
    "SinkConformance",
    "SourceConformance",
    "StoreConformance",
    "TransformationConformance",
]
