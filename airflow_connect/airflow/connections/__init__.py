"""Airflow connections, variables and object storage as the configuration of a run."""
