import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.layout.names.object_names import NameSettings, object_key
from airflow_connect.layout.names.topic_directories import (
    check_pattern,
    check_template,
    constant_head,
    directory_of,
    is_template,
)

TWO_WORDS = "([a-zA-Z]*)[-._]([a-zA-Z]*)"


@pytest.mark.parametrize(
    ("template", "pattern", "topic", "directory"),
    [
        ("topics", "", "t", "topics"),
        ("a/${topic}", "", "t", "a/t"),
        ("${1}/${2}", "([a-zA-Z]*)_([a-zA-Z]*)", "example_name", "example/name"),
        ("${topic}/${2}/some/path/${1}pie", TWO_WORDS, "apple.pie", "apple.pie/pie/some/path/applepie"),
        ("all/${0}", ".*", "x-1", "all/x-1"),
        ("${1}x", "(a)?b", "b", "x"),
        ("${12}", "(.)" * 12, "abcdefghijkl", "l"),
    ],
)
def test_groups_of_the_topic_are_put_into_the_directory(template, pattern, topic, directory):
    check_template(template, "topics.dir", pattern)
    assert directory_of(template, pattern, topic) == directory


def test_a_topic_that_the_expression_does_not_match_whole_is_refused():
    with pytest.raises(ConfigError, match="Topic xay does not fully match") as caught:
        directory_of("${0}", "a", "xay")
    assert caught.value.config_path == "topic.capture.groups.regex"


def test_a_group_that_the_expression_lacks_is_refused():
    with pytest.raises(ConfigError, match=r"must have at least 2 capture groups .* had 1 capture groups"):
        directory_of("${2}", "(.*)", "t")


def test_what_is_no_expression_is_refused():
    with pytest.raises(ConfigError, match="is an invalid regex pattern"):
        check_pattern("(")


@pytest.mark.parametrize(
    ("template", "pattern", "message"),
    [
        ("${1}", "", r"cannot contain .* without a valid topic.capture.groups.regex"),
        ("${partition}", "", r"contains an invalid \$\{\} substitution \$\{partition\}"),
        ("a${}b", ".*", "contains an invalid"),
        ("a${-1}b", ".*", "contains an invalid"),
    ],
)
def test_templates_that_cannot_work_are_refused(template, pattern, message):
    with pytest.raises(ConfigError, match=message) as caught:
        check_template(template, "logs.dir", pattern)
    assert caught.value.config_path == "logs.dir"


@pytest.mark.parametrize(
    ("template", "head"),
    [("topics", "topics"), ("a/b${topic}/c", "a"), ("${0}/x", ""), ("a/${topic}", "a"), ("a/b", "a/b")],
)
def test_the_constant_part_ends_before_the_first_directory_that_depends_on_the_topic(template, head):
    assert constant_head(template) == head
    assert is_template(template) == (head != template)


def test_names_follow_the_original_topic():
    names = NameSettings(topics_dir="${1}/x", hold_end=True, topic_pattern="(.).*")
    assert object_key("d", "abc", 2, 7, ".avro", names) == "a/x/abc/d/abc+2+0000000007.avro"
    assert names.prefix_of("bcd") == "b/x/"
    assert names.prefix == ""


def test_a_group_cannot_walk_out_of_the_tree():
    names = NameSettings(topics_dir="a/${1}", topic_pattern="(..)x")
    with pytest.raises(ConfigError, match="must not contain"):
        names.prefix_of("..x")


def test_without_substitution_the_text_stands_for_itself():
    assert NameSettings(topics_dir="${topic}").prefix_of("t") == "${topic}/"
