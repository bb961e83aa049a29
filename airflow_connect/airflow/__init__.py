"""Floor 6: what the Airflow objects share: connections, trigger form, secrets, retry policy, outcome.

Invariants:
1. Nothing here or in `operators` imports pyspark, confluent_kafka, boto3 or pyarrow: a DAG processor parses
   every DAG file all the time and has no use for them.
2. Connections are read while a task runs, never while a DAG file is parsed.
3. A secret reaches the driver through its standard input only.

Neighbours: `operators` uses this package; `runtime.driver.process` is the only way to a run.
"""
