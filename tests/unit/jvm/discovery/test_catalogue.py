"""Plugins in the cache: read once, with what a plugin host needs beside them."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery import known_locations
from airflow_connect.jvm.discovery.catalogue import Catalogue
from tests.support.java_classes import OBJECT, SINK, SOURCE, TRANSFORMATION, class_file, jar, services


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    folder = tmp_path / "path" / "acme sink"
    jar(folder / "acme.jar", [class_file("acme/Sink", SINK), class_file("acme/Mask", OBJECT, [TRANSFORMATION])],
        services(SINK, "acme.Sink"))  # fmt: skip
    jar(folder / "lib" / "gson.jar", [class_file("gson/Main")])
    return folder


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_a_plugin_host_gets_links_to_the_jars_and_the_missing_services_and_the_folder_stays_as_it_is(
    plugin: Path,
) -> None:
    before = everything(plugin.parent)
    sink, mask = Catalogue.of(str(plugin.parent)).plugins
    assert everything(plugin.parent) == before
    assert (sink.class_name, sink.kinds, sink.is_sink, sink.location) == ("acme.Sink", ("sink",), True, str(plugin))
    assert sink.folders == mask.folders
    (overlay,) = sink.folders
    (inside,) = overlay.iterdir()
    assert inside.name == "acme_sink"
    assert {path.name: path.resolve() for path in inside.iterdir() if path.is_symlink()} == {
        "000-acme.jar": plugin / "acme.jar", "001-gson.jar": plugin / "lib" / "gson.jar",
    }  # fmt: skip
    with zipfile.ZipFile(inside / "airflow-connect-services.jar") as added:
        assert {name: added.read(name) for name in added.namelist()} == {
            "META-INF/services/org.apache.kafka.connect.transforms.Transformation": b"acme.Mask\n"
        }


def test_nothing_is_added_to_a_plugin_that_declares_everything(tmp_path: Path) -> None:
    jar(tmp_path / "path" / "a.jar", [class_file("a/Source", SOURCE)], services(SOURCE, "a.Source"))
    (source,) = Catalogue.of(str(tmp_path / "path")).plugins
    assert [path.name for path in source.folders[0].rglob("*.jar")] == ["000-a.jar"]
    assert [path.name for path in source.folders[0].iterdir()] == ["a"]


def test_a_tree_of_class_files_becomes_a_jar_of_the_cache(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    (plugin / "acme").mkdir(parents=True)
    (plugin / "acme" / "Sink.class").write_bytes(class_file("acme/Sink", SINK))
    (plugin / "acme" / "words.txt").write_text("resource")
    (sink,) = Catalogue.of(str(tmp_path / "path")).plugins
    with zipfile.ZipFile(sink.folders[0] / "acme" / "airflow-connect-classes.jar") as packed:
        assert sorted(packed.namelist()) == ["acme/Sink.class", "acme/words.txt"]


def test_what_is_in_the_cache_is_not_scanned_again_until_a_file_changes(
    plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Catalogue.of(str(plugin.parent))
    scans: list[str] = []
    scan = known_locations.scan
    monkeypatch.setattr(known_locations, "scan", lambda location: scans.append(location.path) or scan(location))
    assert Catalogue.of(str(plugin.parent)) == first
    assert scans == []
    jar(plugin / "more.jar", [class_file("acme/Source", SOURCE)])
    names = [found.class_name for found in Catalogue.of(str(plugin.parent)).plugins]
    assert (names, scans) == (["acme.Sink", "acme.Source", "acme.Mask"], [str(plugin)])
    os.utime(plugin / "acme.jar", (1, 1))
    assert Catalogue.of(str(plugin.parent)).locations != first.locations
    assert scans == [str(plugin)] * 2


def test_a_damaged_folder_of_the_cache_is_made_again(plugin: Path) -> None:
    (sink, _) = Catalogue.of(str(plugin.parent)).plugins
    (sink.known.folder / "scan.json").write_text('{"plugins"')
    (again, _) = Catalogue.of(str(plugin.parent)).plugins
    assert (again, (sink.known.folder / "scan.json").stat().st_size > 20) == (sink, True)


def test_folders_that_nobody_has_used_for_two_weeks_are_removed(plugin: Path, cache: Path) -> None:
    old = cache / "java-plugins" / "old"
    old.mkdir(parents=True)
    os.utime(old, (1, 1))
    Catalogue.of(str(plugin.parent))
    assert not old.exists()


def test_a_cache_that_cannot_be_written_is_an_error_that_says_what_to_do(
    plugin: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file")
    with pytest.raises(ConfigError, match=r"The plugins of plugin.path cannot be prepared: .*File exists") as caught:
        Catalogue.of(str(plugin.parent))
    assert caught.value.code == "java.plugin_path"
    assert "AIRFLOW_CONNECT_CACHE" in caught.value.suggestion


def test_equal_contents_are_recognised_on_two_machines(tmp_path: Path) -> None:
    for where in ("driver", "executor", "other"):
        size = [class_file("a/Extra")] if where == "other" else []
        jar(tmp_path / where / "acme" / "a.jar", [class_file("a/Sink", SINK), *size])
    contents = [Catalogue.of(str(tmp_path / where)).locations[0].content for where in ("driver", "executor", "other")]
    assert contents[0] == contents[1] != contents[2]
