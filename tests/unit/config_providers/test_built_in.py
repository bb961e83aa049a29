"""Files, folders and environment variables as places of values."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.config_providers.directory import DirectoryConfigProvider
from airflow_connect.config_providers.environment import EnvVarConfigProvider
from airflow_connect.config_providers.file import FileConfigProvider
from airflow_connect.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("org.apache.kafka.common.config.provider.FileConfigProvider", FileConfigProvider),
        ("org.apache.kafka.common.config.provider.DirectoryConfigProvider", DirectoryConfigProvider),
        ("org.apache.kafka.common.config.provider.EnvVarConfigProvider", EnvVarConfigProvider),
        ("EnvVarConfigProvider", EnvVarConfigProvider),
    ],
)
def test_providers_are_found_by_kafkas_names(name: str, kind: type) -> None:
    assert load_class(PluginKind.CONFIG_PROVIDER, name) is kind


def test_file_gives_those_keys_that_it_has(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("# comment\npassword = pa\\u0073s\\:word \nempty=\nuser: me\n")
    found = FileConfigProvider().get(str(file), ["password", "empty", "missing", "user"])
    assert found == {"password": "pass:word ", "empty": "", "user": "me"}


def test_file_relative_path_counts_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sec.properties").write_text("k=v")
    monkeypatch.chdir(tmp_path)
    assert FileConfigProvider().get("sec.properties", ["k"]) == {"k": "v"}


@pytest.mark.parametrize("path", ["", "missing.properties", "."])
def test_file_that_cannot_be_read_is_named(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        FileConfigProvider().get(path, ["k"])
    assert caught.value.suggestion
    assert path in caught.value.message


def test_file_error_of_its_grammar_shows_no_content(tmp_path: Path) -> None:
    file = tmp_path / "broken.properties"
    file.write_text("password=hunter22\\uXYZ")
    with pytest.raises(ConfigError, match="line 1") as caught:
        FileConfigProvider().get(str(file), ["password"])
    assert "hunter22" not in str(caught.value)


def test_directory_gives_whole_files_and_nothing_outside(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    (folder / "inner").mkdir(parents=True)
    (folder / "password").write_text("hunter22\n")
    (tmp_path / "outside").write_text("x")
    found = DirectoryConfigProvider().get(str(folder), ["password", "missing", "../outside", "inner", "..", ""])
    assert found == {"password": "hunter22\n"}


def test_directory_content_that_is_no_text_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"hunter22\xff")
    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        DirectoryConfigProvider().get(str(tmp_path), ["key"])
    assert "hunter22" not in str(caught.value)
    with pytest.raises(ConfigError, match="no folder"):
        DirectoryConfigProvider().get(str(tmp_path / "key"), ["x"])


@pytest.mark.parametrize("kind", [FileConfigProvider, DirectoryConfigProvider])
def test_allowed_paths_bound_what_is_read_links_included(
    kind: type[FileConfigProvider | DirectoryConfigProvider], tmp_path: Path
) -> None:
    allowed, forbidden = tmp_path / "allowed", tmp_path / "allowed-not"
    for folder in (allowed, forbidden):
        folder.mkdir()
        (folder / "k").write_text("k=v")
    (allowed / "file-link").symlink_to(forbidden / "k")
    (allowed / "folder-link").symlink_to(forbidden)
    provider = kind()
    provider.configure({"allowed.paths": f"{tmp_path / 'allowed'}, {allowed / 'k'}"})
    good, bad = (allowed / "k", forbidden / "k") if kind is FileConfigProvider else (allowed, forbidden)
    assert provider.get(str(good), ["k"])
    for path in (bad, allowed / "folder-link" / "k", allowed / ".." / "allowed-not" / "k"):
        with pytest.raises(ConfigError) as caught:
            provider.get(str(path), ["k"])
        assert "allowed.paths" in caught.value.message
    link = (allowed / "file-link", "k") if kind is FileConfigProvider else (allowed, "file-link")
    with pytest.raises(ConfigError, match=r"allowed\.paths"):
        provider.get(str(link[0]), [link[1]])


@pytest.mark.parametrize(("paths", "what"), [("relative", "is not absolute"), ("/not/there", "does not exist")])
def test_allowed_paths_that_cannot_be_meant_are_refused(paths: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        FileConfigProvider().configure({"allowed.paths": paths})
    assert caught.value.config_path == "allowed.paths"


def test_environment_gives_variables_that_are_set() -> None:
    provider = EnvVarConfigProvider({"CONNECT_PW": "hunter22", "EMPTY": ""})
    provider.configure({})
    assert provider.get("", ["CONNECT_PW", "EMPTY", "MISSING"]) == {"CONNECT_PW": "hunter22", "EMPTY": ""}
    with pytest.raises(ConfigError, match="have no path"):
        provider.get("path", ["CONNECT_PW"])


def test_environment_pattern_must_match_the_whole_name() -> None:
    provider = EnvVarConfigProvider({"CONNECT_PW": "hunter22", "MY_CONNECT_PW": "x"})
    provider.configure({"allowlist.pattern": "CONNECT_.*"})
    assert provider.get("", ["CONNECT_PW"]) == {"CONNECT_PW": "hunter22"}
    with pytest.raises(ConfigError, match="MY_CONNECT_PW does not match"):
        provider.get("", ["MY_CONNECT_PW"])
    with pytest.raises(ConfigError, match="not a regular expression"):
        provider.configure({"allowlist.pattern": "("})
