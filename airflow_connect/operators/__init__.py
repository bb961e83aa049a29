"""Layer 8: Airflow operators, from `airflow_connect.operators.connector`.

Parsing a DAG file that uses them imports Airflow's SDK and the standard library only.
"""
