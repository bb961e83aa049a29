"""`airflow-connect demo`: a topic copied to S3 by a DAG run, on real servers that are started for it.

`command` tells the story, `meetups` makes the records, `stage` starts the servers, `airflow_process` runs the
DAG in a process of its own (this package never imports Airflow), `bucket` counts what arrived.
"""
