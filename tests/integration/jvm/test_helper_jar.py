"""The jar that the package ships is what its sources compile to, byte for byte."""

from __future__ import annotations

import zipfile

import pytest

from airflow_connect.jvm.host_jars import HELPER
from tests.devstack.helper_jar import build

pytestmark = pytest.mark.integration


def test_shipped_jar_is_compiled_from_its_sources(tmp_path):
    build(tmp_path / "host.jar")
    with zipfile.ZipFile(tmp_path / "host.jar") as built, zipfile.ZipFile(HELPER) as shipped:
        assert built.namelist() == shipped.namelist()
        changed = [name for name in built.namelist() if built.read(name) != shipped.read(name)]
    assert changed == [], "run `make helper` and commit the jar"
    assert (tmp_path / "host.jar").read_bytes() == HELPER.read_bytes()
