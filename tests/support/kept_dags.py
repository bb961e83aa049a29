"""DAGs in Airflow's database, as its DAG processor keeps them."""

from __future__ import annotations

import shutil
from pathlib import Path

BUNDLE = "tests"


def keep_dag(folder: Path, source: str) -> None:
    """Parse a DAG file, the only one of its folder, and keep its DAG."""
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name=BUNDLE))
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)  # Python compares files by second and size.
    (folder / "dag.py").write_text(source)
    bag = DagBag(str(folder))
    assert bag.import_errors == {}
    sync_bag_to_db(bag, BUNDLE, None)


def forget_dag(dag_id: str) -> None:
    """As Airflow does when its file is gone."""
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        assert dag is not None
        dag.is_stale = True
