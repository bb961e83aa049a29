"""Many files are published at once: conflicts wait for the others, any other error ends it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.api.staging import Outcome, StagedFile
from airflow_connect.errors import PublishConflictError, UnavailableError
from airflow_connect.stores.publishing import Published, publish_each, refuse_equal_keys
from airflow_connect.stores.store import FileIdentity

FILES = [FileIdentity(f"k{n}", "t", 0, n).staged(f"k{n}", n + 1, 1, 3, {}) for n in range(4)]


def publish(publish_one: Callable[[StagedFile], Outcome], seen: list[int]) -> Published:
    with ThreadPoolExecutor(2) as pool:
        return publish_each(FILES, publish_one, seen.append, pool)


def conflict(file: StagedFile) -> PublishConflictError:
    return PublishConflictError(f"{file.key} is taken.", suggestion="Move it.", config_path="some.key")


def test_outcomes_are_told_by_key_and_progress_counts_all() -> None:
    seen: list[int] = []
    published = publish(lambda file: Outcome.LOST if file.start == 2 else Outcome.PUBLISHED, seen)

    outcomes = published.checked("names hold other files")
    assert outcomes == {file.key: Outcome.LOST if file.start == 2 else Outcome.PUBLISHED for file in FILES}
    assert seen == [1, 2, 3, 4]


def test_one_conflict_is_raised_as_it_is_when_the_others_are_published() -> None:
    seen: list[int] = []

    def publish_one(file: StagedFile) -> Outcome:
        if file.start == 1:
            raise conflict(file)
        return Outcome.PUBLISHED

    published = publish(publish_one, seen)
    assert sorted(published.outcomes) == ["k0", "k2", "k3"]
    assert seen == [1, 2, 3, 4]
    with pytest.raises(PublishConflictError) as caught:
        published.checked("names hold other files")
    assert caught.value.message == "k1 is taken."


def test_several_conflicts_are_counted_and_the_first_is_shown_with_its_way_out() -> None:
    def publish_one(file: StagedFile) -> Outcome:
        raise conflict(file)

    with pytest.raises(PublishConflictError, match=r"4 names hold other files than the staged ones\. .* is taken\."):
        publish(publish_one, []).checked("names hold other files")
    with pytest.raises(PublishConflictError) as caught:
        publish(publish_one, []).checked("keys hold other objects")
    assert (caught.value.suggestion, caught.value.config_path) == ("Move it.", "some.key")


def test_any_other_error_ends_it() -> None:
    def publish_one(file: StagedFile) -> Outcome:
        raise UnavailableError("Nobody answers.")

    seen: list[int] = []
    with pytest.raises(UnavailableError, match="Nobody answers"):
        publish(publish_one, seen)
    assert seen == []


def test_two_files_with_one_key_are_refused() -> None:
    refuse_equal_keys(FILES)
    with pytest.raises(PublishConflictError, match="k3") as caught:
        refuse_equal_keys([*FILES, FILES[3]])
    assert caught.value.code == "publish.same_key"
