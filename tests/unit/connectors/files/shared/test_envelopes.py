"""JSON with a schema in each message: both paths write the same files, whatever the format and the transformations."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared.staging import JSON, NOW_MS, copy
from tests.unit.connectors.files.shared.test_column_configurations import FORMATS, HDFS_PARQUET, chains
from tests.unit.converters.json.test_envelope_columns import BEFORE, ODD, ROWS

FORMS = {**FORMATS, "hdfs": HDFS_PARQUET}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chain=chains(), tolerance=st.sampled_from(["none", "all"]), values=st.lists(ROWS | ODD, min_size=1, max_size=12))
def test_both_paths_write_the_same_files(form: str, chain: dict[str, str], tolerance: str, values: list[bytes]) -> None:
    config = {"value.converter": JSON, "flush.size": "3", "errors.tolerance": tolerance, **FORMS[form], **chain}
    records = [[KafkaRecord("t", 0, n, None, value, NOW_MS + n) for n, value in enumerate(values)]]
    reference, _ = copy(config, records, columnar=False)
    with patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", 1):
        columnar, _ = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)


@pytest.mark.parametrize("form", ["json", "parquet", "avro", "hdfs"])
def test_bytes_decimals_and_floats_are_written_in_columns(form: str) -> None:
    payload = b'{"id":%d,"ratio":1.1,"data":"AP8=","price":"AP8=","inner":{"data":"QQ==","ratio":2}}}'
    records = [[KafkaRecord("t", 0, n, None, BEFORE + payload % n, NOW_MS) for n in range(600)]]
    config = {"value.converter": JSON, "flush.size": "200", **FORMS[form]}
    reference, _ = copy(config, records, columnar=False)
    columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert (reference.error, len(columnar.files), in_columns) == ("", 3, 600)
