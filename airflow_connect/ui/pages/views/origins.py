"""Who started a run."""

from __future__ import annotations


def is_of(origin: object, dag_id: str, dag_run_id: str, task_id: str) -> bool:
    """Whether a run was started by this DAG, and by this run and task of it, as far as they are named."""
    wanted = {"dag_id": dag_id, "dag_run_id": dag_run_id, "task_id": task_id}
    return isinstance(origin, dict) and all(origin.get(name) == value for name, value in wanted.items() if value)
