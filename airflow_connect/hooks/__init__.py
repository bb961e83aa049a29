"""Layer 8: Airflow hooks. `connect` is for the connectors of this package, `kafka_connect` for a Kafka Connect cluster.

Importing a hook loads Airflow's SDK and the standard library only; connections are read when a method needs them.
"""
