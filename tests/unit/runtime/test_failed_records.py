"""`errors.max.records` over all tasks of a run."""

import pytest

from airflow_connect.documents.run import TaskReport
from airflow_connect.errors import TooManyErrorsError
from airflow_connect.runtime.failed_records import refuse_too_many


def reports(*failed):
    return [
        TaskReport(task, 0, (), (), failed=count, failed_places=tuple(f"t-{task}@{n}" for n in range(min(count, 5))))
        for task, count in enumerate(failed)
    ]


@pytest.mark.parametrize(("failed", "limit"), [((2, 3), 5), ((0, 0), 1), ((70, 80), None)])
def test_refuse_too_many_within_the_limit_passes(failed, limit):
    refuse_too_many(reports(*failed), limit)


def test_refuse_too_many_names_the_sum_and_the_first_places():
    with pytest.raises(TooManyErrorsError) as raised:
        refuse_too_many(reports(3, 3, 4), 9)

    assert raised.value.message == (
        "The run had 10 failed records, more than errors.max.records=9 allows. "
        "The first: t-0@0; t-0@1; t-0@2; t-1@0; t-1@1."
    )
    assert "raise errors.max.records" in raised.value.suggestion
