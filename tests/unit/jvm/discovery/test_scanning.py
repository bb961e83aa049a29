"""Which classes of a folder are plugins, by their class files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.jvm.discovery.locations import read_plugin_path
from airflow_connect.jvm.discovery.scanning import ScannedLocation, scan
from tests.support.java_classes import (
    ABSTRACT,
    CONFIG_PROVIDER,
    CONVERTER,
    HEADER_CONVERTER,
    INTERFACE,
    MODULE,
    OBJECT,
    PREDICATE,
    PUBLIC,
    SINK,
    SOURCE,
    TRANSFORMATION,
    class_file,
    jar,
    services,
)


def scanned(folder: Path) -> ScannedLocation:
    (location,) = read_plugin_path(str(folder.parent)).locations
    assert location.path == str(folder)
    return scan(location)


def found(folder: Path) -> list[tuple[str, str]]:
    return [(plugin.kind, plugin.class_name) for plugin in scanned(folder).plugins]


def test_every_kind_is_found_by_its_super_type_and_a_class_may_have_two(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    jar(plugin / "acme.jar", [
        class_file("acme/Sink", SINK), class_file("acme/Source", SOURCE),
        class_file("acme/Both", OBJECT, [CONVERTER, HEADER_CONVERTER]),
        class_file("acme/Mask$Value", OBJECT, [TRANSFORMATION]), class_file("acme/IsOld", OBJECT, [PREDICATE]),
        class_file("acme/Vault", OBJECT, [CONFIG_PROVIDER]), class_file("acme/Other"),
    ])  # fmt: skip
    assert found(plugin) == [
        ("sink", "acme.Sink"), ("source", "acme.Source"), ("converter", "acme.Both"),
        ("header_converter", "acme.Both"), ("transformation", "acme.Mask$Value"), ("predicate", "acme.IsOld"),
        ("configprovider", "acme.Vault"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        class_file("acme/A", SINK, access=PUBLIC | ABSTRACT),
        class_file("acme/A", OBJECT, [CONVERTER], access=PUBLIC | ABSTRACT | INTERFACE),
        class_file("acme/A", SINK, access=0),
        class_file("acme/A", SINK, constructor=None),
        class_file("acme/A", SINK, constructor=(0, "()V")),
        class_file("acme/A", SINK, constructor=(PUBLIC, "(I)V")),
        class_file("acme/A", "org/apache/kafka/connect/connector/Connector"),
    ],
    ids=["abstract", "interface", "not-public", "no-constructor", "private-constructor", "arguments", "other-type"],
)
def test_a_class_that_connect_cannot_create_is_no_plugin(tmp_path: Path, data: bytes) -> None:
    jar(tmp_path / "path" / "acme" / "acme.jar", [data])
    assert found(tmp_path / "path" / "acme") == []


def test_super_types_are_followed_into_other_jars_and_into_kafkas_own_classes(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    jar(plugin / "lib" / "base.jar", [
        class_file("base/Sink", "base/Abstract", access=PUBLIC), class_file("base/Abstract", SINK, access=ABSTRACT),
        class_file("base/Circle", "base/Circle"),
    ])  # fmt: skip
    jar(plugin / "acme.jar", [
        class_file("acme/Sink", "base/Sink"),
        class_file("acme/Json", "org/apache/kafka/connect/json/JsonConverter"),
        class_file("acme/Cast", "org/apache/kafka/connect/transforms/Cast$Value"),
        class_file("acme/Env", "org/apache/kafka/common/config/provider/EnvVarConfigProvider"),
    ])  # fmt: skip
    assert found(plugin) == [
        ("sink", "acme.Sink"), ("sink", "base.Sink"), ("converter", "acme.Json"), ("header_converter", "acme.Json"),
        ("transformation", "acme.Cast"), ("configprovider", "acme.Env"),
    ]  # fmt: skip


def test_classes_that_the_worker_provides_are_left_out_and_those_that_connect_isolates_are_not(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    jar(plugin / "kafka.jar", [
        class_file("org/apache/kafka/connect/runtime/Mock", SINK),
        class_file("org/apache/kafka/connect/tools/MockSink", SINK),
        class_file("org/apache/kafka/connect/file/FileStreamSinkConnector", SINK),
        class_file("org/apache/kafka/connect/json/JsonConverter", OBJECT, [CONVERTER]),
    ])  # fmt: skip
    assert found(plugin) == [
        ("sink", "org.apache.kafka.connect.file.FileStreamSinkConnector"),
        ("converter", "org.apache.kafka.connect.json.JsonConverter"),
    ]


def test_service_files_are_joined_and_what_they_lack_is_known(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    declared = services(SINK, "acme.Sink  # the sink", "", "# acme.Old", "acme.Missing")
    jar(plugin / "a.jar", [class_file("acme/Sink", SINK), class_file("acme/Second", SINK)], declared)
    jar(plugin / "b.jar", [class_file("acme/Source", SOURCE)])
    result = scanned(plugin)
    assert {plugin.class_name: plugin.is_declared for plugin in result.plugins} == {
        "acme.Sink": True, "acme.Second": False, "acme.Source": False,
    }  # fmt: skip
    assert result.undeclared == {"sink": ["acme.Second"], "source": ["acme.Source"]}


def test_the_first_class_of_a_name_counts_as_on_the_class_path(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    jar(plugin / "a.jar", [class_file("acme/Sink")])
    jar(plugin / "b.jar", [class_file("acme/Sink", SINK)])
    assert found(plugin) == []


def test_a_module_and_versions_of_a_multi_release_jar(tmp_path: Path) -> None:
    plugin, manifest = tmp_path / "path" / "acme", "Manifest-Version: 1.0\r\nMulti-Release: true\r\n"
    module = class_file("module-info", OBJECT, access=MODULE, constructor=None)
    sink, newer, newest = (class_file(name, SINK) for name in ("acme/Sink", "acme/Newer", "acme/Newest"))
    jar(plugin / "a.jar", [module, class_file("acme/Sink")], {
        "META-INF/MANIFEST.MF": manifest, "META-INF/versions/11/acme/Sink.class": sink,
        "META-INF/versions/11/acme/Newer.class": newer, "META-INF/versions/99/acme/Newest.class": newest,
        "META-INF/versions/9/module-info.class": module,
    })  # fmt: skip
    result = scanned(plugin)
    assert ([p.class_name for p in result.plugins], result.warnings) == (["acme.Newer"], ())
    jar(plugin / "a.jar", [], {"META-INF/versions/11/acme/Newer.class": newer})
    assert found(plugin) == []


def test_broken_files_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    jar(plugin / "a.jar", [class_file("acme/Sink", SINK)], {
        "acme/Text.class": "this is no class file",
        "acme/Short.class": class_file("acme/Short")[:40], "acme/Empty.class": "",
    })  # fmt: skip
    (plugin / "b.jar").write_bytes(b"PK\x03\x04 not a zip")
    jar(plugin / "c.zip", files={"acme/lib/inner.jar": (plugin / "a.jar").read_bytes()})
    result = scanned(plugin)
    assert [p.class_name for p in result.plugins] == ["acme.Sink"]
    assert result.warnings == (
        f"{plugin}/b.jar cannot be read: File is not a zip file.",
        (
            f"{plugin}/c.zip holds jars, for example acme/lib/inner.jar, and no classes. Jars inside an archive are not"
            " read: unpack it into a folder of plugin.path."
        ),
        (
            f"{plugin}/a.jar has 3 class files that cannot be read, for example acme/Text.class: it does not begin as a"
            " class file."
        ),
    )


def test_a_tree_of_class_files_is_a_plugin(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    (plugin / "acme").mkdir(parents=True)
    (plugin / "acme" / "Sink.class").write_bytes(class_file("acme/Sink", SINK))
    (plugin / "META-INF" / "services").mkdir(parents=True)
    for name, text in services(SINK, "acme.Sink").items():
        (plugin / name).write_text(text)
    (plugin / "acme" / "Bad.class").write_bytes(b"")
    result = scanned(plugin)
    assert [(p.class_name, p.is_declared) for p in result.plugins] == [("acme.Sink", True)]
    assert result.warnings == (f"{plugin}/acme/Bad.class cannot be read: it is damaged.",)


def test_classes_that_use_the_insides_of_a_worker_are_named_with_what_they_use(tmp_path: Path) -> None:
    plugin = tmp_path / "path" / "acme"
    uses = ["Lorg/apache/kafka/connect/runtime/WorkerSinkTaskContext;", "org.apache.kafka.connect.runtime.Worker"]
    jar(plugin / "a.jar", [
        class_file("acme/Sink", SINK, texts=uses), class_file("acme/Source", SOURCE),
        class_file("org/apache/kafka/connect/runtime/Worker", texts=uses),
    ])  # fmt: skip
    assert scanned(plugin).runtime_uses == {
        "acme.Sink": (
            "org.apache.kafka.connect.runtime.Worker", "org.apache.kafka.connect.runtime.WorkerSinkTaskContext",
        ),
    }  # fmt: skip
