"""Kafka Connect's model as Airflow DAG runs: bounded, exactly-once copies, executed by Spark.

Importing this package loads the standard library only. Connector authors import `airflow_connect.api`, DAG
authors `airflow_connect.operators`. The layers of the package and who may import whom: docs/architecture.md.
"""

__version__ = "0.1.0"
