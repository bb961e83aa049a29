"""Layer 8: connectors inside a Python program (KIP-26's embedded mode), without a server and without Airflow.

`connect.Connect` is the class that programs import, as `airflow_connect.Connect`. `engines` decides where tasks run.
Neighbours: `control` keeps connectors, states and offsets in Kafka, as a worker does; `runtime.driver.entry` does the
runs, in this process.
"""
