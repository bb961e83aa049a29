"""What a `plugin.path` names: Kafka Connect's rules, and a sentence for everything that is not read."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_connect.jvm.discovery.catalogue import Catalogue
from airflow_connect.jvm.discovery.locations import read_plugin_path
from tests.support.java_classes import SINK, class_file, jar


def test_folders_jars_and_archives_of_several_entries_are_one_plugin_each(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one / "b" / "lib" / "b2.jar", one / "b" / "b1.JAR", one / "a.zip", two / "c" / "c.jar"):
        jar(path)
    (one / "notes.txt").write_text("no plugin")
    alone = jar(tmp_path / "alone.jar")
    path = read_plugin_path(f" {one} ,{two}, ,{alone},{one}")
    assert (path.entries, path.warnings) == ((str(one), str(two), str(alone), str(one)), ())
    assert [(found.path, [Path(file.path).name for file in found.archives]) for found in path.locations] == [
        (str(one / "a.zip"), ["a.zip"]),
        (str(one / "b"), ["b1.JAR", "b2.jar"]),
        (str(two / "c"), ["c.jar"]),
        (str(alone), ["alone.jar"]),
    ]


def test_what_is_missing_or_in_the_wrong_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "Loose.class").write_bytes(class_file("Loose", SINK))
    (tmp_path / "a.txt").write_text("")
    path = read_plugin_path(f"{tmp_path}/missing,{tmp_path}/a.txt,{tmp_path}/path")
    assert path.locations == ()
    assert path.warnings == (
        f"plugin.path names {tmp_path}/missing, which does not exist on this machine; nothing is read from there.",
        (
            f"plugin.path names {tmp_path}/a.txt, which is neither a folder nor a jar. Name the folder that holds the"
            " folders of the plugins."
        ),
        (
            f"Loose.class lies directly in {tmp_path}/path of plugin.path, where classes are not read. Put classes into"
            " a folder of their own, with the folders of their packages, or into a jar."
        ),
    )


def test_links_to_folders_and_jars_are_followed_once_and_broken_ones_are_named(tmp_path: Path) -> None:
    jar(tmp_path / "store" / "real.jar")
    plugin = tmp_path / "path" / "acme"
    plugin.mkdir(parents=True)
    (plugin / "link.jar").symlink_to(tmp_path / "store" / "real.jar")
    (plugin / "circle").symlink_to(plugin)
    (plugin / "gone.jar").symlink_to(tmp_path / "gone")
    (tmp_path / "path" / "linked").symlink_to(tmp_path / "store")
    linked, acme = sorted(read_plugin_path(f"{tmp_path}/path").locations, key=lambda found: found.path, reverse=True)
    assert [file.path for file in acme.archives] == [file.path for file in linked.archives]
    assert acme.archives[0].path == os.path.realpath(tmp_path / "store" / "real.jar")
    assert acme.warnings == (f"{plugin}/gone.jar is a link to {tmp_path}/gone, which does not exist.",)


def test_jars_beside_class_files_are_all_that_is_read(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    jar(plugin / "a.jar")
    (plugin / "A.class").write_bytes(class_file("A", SINK))
    (found,) = read_plugin_path(f"{tmp_path}/path").locations
    assert (len(found.archives), found.tree) == (1, ())
    assert found.warnings == (f"{plugin} holds jars and class files; only the jars are read, as in Kafka Connect.",)


def test_the_folder_of_one_plugin_given_by_mistake_is_recognised(tmp_path: Path) -> None:
    plugin = tmp_path / "plugins" / "acme"
    jar(plugin / "acme.jar", [class_file("acme/Sink", SINK)])
    for name in ("gson", "guava", "slf4j"):
        jar(plugin / f"{name}.jar", [class_file(f"{name}/Main")])
    assert Catalogue.of(str(plugin)).warnings == (
        (
            f"plugin.path names {plugin}, which looks like the folder of one plugin: acme.jar cannot use gson.jar,"
            " guava.jar and 1 more beside it, because each jar directly in an entry of plugin.path is a plugin by"
            f" itself. Name the folder above it: {tmp_path}/plugins."
        ),
    )
    assert Catalogue.of(str(tmp_path / "plugins")).warnings == ()


def test_jars_that_hold_plugins_each_are_no_mistake(tmp_path: Path) -> None:
    for name in ("a", "b"):
        jar(tmp_path / "plugins" / f"{name}.jar", [class_file(f"{name}/Sink", SINK)])
    catalogue = Catalogue.of(str(tmp_path / "plugins"))
    assert ([plugin.class_name for plugin in catalogue.plugins], catalogue.warnings) == (["a.Sink", "b.Sink"], ())
