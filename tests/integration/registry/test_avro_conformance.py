"""AvroConverter passes the conformance suite of converters, on a real registry."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import pytest

from airflow_connect.api import schema as s
from airflow_connect.testing import ConverterConformance

if TYPE_CHECKING:
    from tests.integration.registry.conftest import Registry

pytestmark = pytest.mark.integration

# A schema without a version is read with that of its subject.
ORDER = s.struct(
    ("id", s.INT64),
    ("tiny", s.INT8),
    ("note", s.OPTIONAL_STRING),
    ("price", s.decimal(2, optional=True)),
    ("at", s.timestamp()),
    ("tags", s.array(s.STRING)),
    ("counts", s.map_of(s.INT32, s.OPTIONAL_FLOAT64)),
    name="shop.Order",
    version=1,
)
VALUE = {
    "id": 1 << 40,
    "tiny": -5,
    "note": None,
    "price": Decimal("12.34"),
    "at": 1_700_000_000_000,
    "tags": ["a", "b"],
    "counts": {1: 0.5, 2: None},
}
FLAT = s.struct(("id", s.INT32), ("name", s.STRING), name="shop.Flat", version=4)


class TestAvroConverter(ConverterConformance):
    converter_class = "io.confluent.connect.avro.AvroConverter"
    values: ClassVar = [
        (ORDER, VALUE),
        (FLAT, {"id": 7, "name": "Ülm"}),
        (replace(s.STRING, version=1), "text"),
        (s.date(), 19_000),
        (None, {"any": [1, None, 2.5]}),
    ]
    broken: ClassVar = [b"", b"\0", b"\0\0\0\0", b'{"id":1}', b"\0\x7f\xff\xff\xff\x02"]
    wrong_configs: ClassVar = [
        ({}, '"schema.registry.url"'),
        ({"schema.registry.url": "registry:8081"}, "schema.registry.url"),
        ({"schema.registry.url": "http://r", "auto.register.schemas": "perhaps"}, "auto.register.schemas"),
        ({"schema.registry.url": "http://r", "value.subject.name.strategy": "Mine"}, "value.subject.name.strategy"),
    ]

    @pytest.fixture(autouse=True)
    def use_registry(self, schema_registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "config", {"schema.registry.url": schema_registry.url})
