"""What the host says about plugins is what Connect's REST API says."""

from __future__ import annotations

import re

import pytest

from airflow_connect.errors import JavaPluginError

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def described(plugin_path):
    from airflow_connect.jvm.host import PluginHost

    classes = [
        ["sink", "plugins.Sinks$Records"],
        ["source", "org.apache.kafka.connect.file.FileStreamSourceConnector"],
        ["transformation", "org.apache.kafka.connect.transforms.Filter"],
        ["predicate", "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"],
        ["converter", "org.apache.kafka.connect.json.JsonConverter"],
        ["header_converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter"],
        ["configprovider", "org.apache.kafka.common.config.provider.FileConfigProvider"],
        ["sink", "com.example.Missing"],
    ]
    with PluginHost.start([plugin_path], is_driver=True, heap_mb=128) as host:
        yield {each["class"].rsplit(".", 1)[1]: each for each in host.call("describe", classes=classes).result["value"]}


def test_describe_gives_version_and_keys_as_rest_does(described):
    records = described["Sinks$Records"]
    assert (records["kind"], records["version"]) == ("sink", "2.0")
    mode, secret = records["config"]
    assert mode == {
        "name": "mode",
        "type": "STRING",
        "required": False,
        "default_value": "ok",
        "importance": "HIGH",
        "documentation": "How it works.",
        "group": "General",
        "order_in_group": 1,
        "width": "SHORT",
        "display_name": "Mode",
        "dependents": [],
    }
    assert (secret["name"], secret["type"], secret["default_value"]) == ("secret", "PASSWORD", None)


def test_describe_knows_every_kind_of_plugin(described):
    keys = {name: [key["name"] for key in each.get("config", [])] for name, each in described.items()}
    assert keys["FileStreamSourceConnector"] == ["file", "topic", "batch.size"]
    assert keys["Filter"] == []
    assert keys["HasHeaderKey"] == ["name"]
    assert "schemas.enable" in keys["JsonConverter"]
    assert keys["SimpleHeaderConverter"] == []
    assert keys["FileConfigProvider"] == []
    assert described["FileStreamSourceConnector"]["version"] == "4.3.1"


def test_describe_of_a_class_that_is_not_there_does_not_hide_the_others(described):
    assert "com.example.Missing" in described["Missing"]["error"]
    assert "config" not in described["Missing"]


def test_validate_answers_as_rest_does_and_hides_secrets(start_host):
    config = {"name": "c", "connector.class": "plugins.Sinks$Records", "mode": "wrong", "secret": "geheim"}
    result = start_host().call("validate", config=config).result
    assert (result["name"], result["error_count"], result["groups"]) == ("plugins.Sinks$Records", 1, ["General"])
    mode, secret = (each["value"] for each in result["configs"])
    assert mode["errors"] == ["Invalid value wrong for configuration mode: String must be one of: ok, other"]
    assert mode["recommended_values"] == []
    assert secret["value"] == "[hidden]"
    assert "geheim" not in str(result)


def test_connector_without_a_definition_is_an_error_that_names_it(start_host):
    host = start_host()
    name = "plugins.FailingSources$ReturnsNothing"
    with pytest.raises(JavaPluginError, match=r"ReturnsNothing: .*ConnectException: config\(\) must not return null"):
        host.call("validate", config={"name": "c", "connector.class": name})
    (described,) = host.call("describe", classes=[["source", name]]).result["value"]
    assert described["error"].endswith("config() must not return null.")


def test_class_that_is_no_connector_is_an_error_that_names_it(start_host):
    with pytest.raises(JavaPluginError, match=re.escape("com.example.Missing")):
        start_host().call("validate", config={"name": "c", "connector.class": "com.example.Missing"})
