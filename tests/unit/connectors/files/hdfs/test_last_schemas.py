"""Schemas of the last published files, as another connector left them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.schema import INT64, OPTIONAL_STRING, Schema, struct
from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.files.hdfs.file_trees import LocalTree
from airflow_connect.connectors.files.hdfs.last_schemas import LastSchemas
from airflow_connect.connectors.files.shared.value_schemas import schema_of_text
from airflow_connect.errors import DataError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.layout.names.object_names import NameSettings

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
V1 = struct(("n", INT64), name="space.Row", version=1)
V2 = struct(("n", INT64), ("note", OPTIONAL_STRING), name="space.Row", version=2)
AVRO, PARQUET, ORC, JSON = (f"io.confluent.connect.hdfs.{name}" for name in (
    "avro.AvroFormat", "parquet.ParquetFormat", "orc.OrcFormat", "json.JsonFormat"
))  # fmt: skip


def avro(schema: Schema, **more: Any) -> bytes:
    made = io.BytesIO()
    avro_type: Any = {**AvroFormat().avro_schema(schema), **more}
    fastavro.writer(made, avro_type, [{"n": 1, "note": None}], codec="deflate")
    return made.getvalue()


def parquet(schema: Schema, key: str = "parquet.avro.schema") -> bytes:
    made = pa.BufferOutputStream()
    table = pa.table({"n": [1]}).replace_schema_metadata({key: json.dumps(AvroFormat().avro_schema(schema))})
    pq.write_table(table, made)
    return made.getvalue().to_pybytes()


class Place:
    """A directory of a connector."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, data: bytes) -> None:
        path = self.root / "topics/t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def schemas(self, file_format: str = AVRO) -> dict[TopicPartition, Schema | None]:
        config = HdfsSinkConfig.from_config(
            {"name": "c", "topics": "t", "store.url": f"file://{self.root}", "flush.size": "3",
             "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector", "format.class": file_format,
             "schema.compatibility": "BACKWARD"}
        )  # fmt: skip
        names = NameSettings(hold_end=True, topic_pattern="")
        found = LastSchemas(LocalTree(str(self.root)), names, config).of([T0, T1, T2])
        return {tp: schema_of_text(text) for tp, text in found.items()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_an_empty_place_tells_no_schema(place: Place) -> None:
    assert place.schemas() == {}


def test_the_file_with_the_highest_offset_tells_the_schema(place: Place) -> None:
    place.put("partition=0/t+0+0000000010+0000000019.avro", avro(V2))
    place.put("partition=0/t+0+0000000000+0000000009.avro", avro(V1))
    place.put("a=b/c=d/t+1+3+5.avro", avro(V1))
    place.put("partition=2/other+2+0+100.avro", avro(V1))
    assert place.schemas() == {T0: V2, T1: V1}


def test_the_footer_of_a_parquet_file_tells_the_schema(place: Place) -> None:
    place.put("partition=0/t+0+0+9.parquet", parquet(V2))
    place.put("partition=1/t+1+0+9.parquet", parquet(V1, "avro.schema"))
    place.put("partition=2/t+2+0+9.parquet", parquet(V1, "something.else"))
    assert place.schemas(PARQUET) == {T0: V2, T1: V1}


def test_a_header_may_be_larger_than_what_is_read_first(place: Place) -> None:
    place.put("p/t+0+0+9.avro", avro(V2, doc="long " * 40_000))
    assert place.schemas()[T0].version == 2


def test_files_that_tell_no_schema_with_a_version_count_as_none(place: Place) -> None:
    place.put("p/t+0+0+9.avro", avro(struct(("n", INT64), name="space.Row")))
    place.put("p/t+1+0+9.avro", avro(V1))
    place.put("p/t+1+10+19.json", b'{"n": 1}\n')
    made = pa.BufferOutputStream()
    orc.write_table(pa.table({"n": [1]}), made)
    place.put("p/t+2+0+9.orc", made.getvalue().to_pybytes())
    assert place.schemas() == {}
    assert place.schemas(ORC) == {}
    assert place.schemas(JSON) == {}


@pytest.mark.parametrize(
    ("file_format", "name", "data"),
    [
        (AVRO, "t+0+0+9.avro", b"no Avro"),
        (AVRO, "t+0+0+9.avro", avro(V1)[:40]),
        (AVRO, "t+0+0+9.avro", b""),
        (PARQUET, "t+0+0+9.parquet", b"PAR1"),
        (PARQUET, "t+0+0+9.parquet", b"PAR1" + b"\xff" * 100),
        (PARQUET, "t+0+0+9.parquet", b"PAR1 some bytes" + (12).to_bytes(4, "little") + b"PAR1"),
    ],
    ids=["no avro", "cut off", "empty", "too short", "no footer", "damaged footer"],
)
def test_a_damaged_file_is_named(place: Place, file_format: str, name: str, data: bytes) -> None:
    place.put(f"p/{name}", data)
    with pytest.raises(DataError, match=rf"The schema of .*/p/{name.replace('+', '.')}, the last file") as refused:
        place.schemas(file_format)
    assert refused.value.code == "data.schema_of_last_file"
    assert refused.value.config_path == "schema.compatibility"
