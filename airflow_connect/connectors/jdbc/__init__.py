"""Connectors for databases: tables as a source, rows as a target. `airflow_connect.databases` reaches the servers."""
