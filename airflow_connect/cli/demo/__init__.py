"""`airflow-connect demo`: copies a topic to S3 with a DAG run, on real servers that it starts.

`command` is the sequence of steps, `meetups` creates the records, `stage` starts the servers, `airflow_process` runs
the DAG in a separate process (this package never imports Airflow), and `bucket` counts the copied records.
"""
