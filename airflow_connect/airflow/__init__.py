"""Layer 8: what the Airflow classes share: connections, trigger form, secrets, retry policy, outcome.

Invariants:
1. Nothing here or in `operators` imports pyspark, confluent_kafka, boto3 or pyarrow: a DAG processor parses
   every DAG file repeatedly and does not need them.
2. Connections are read while a task runs, never while a DAG file is parsed.
3. A secret reaches the driver through its standard input only.

Neighbours: `operators` uses this package; runs are started through `runtime.driver.process` only.
"""
