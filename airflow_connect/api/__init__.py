"""Floor 1: the contracts and the plain data of the connector model. No I/O, standard library only.

Everything that a connector author imports lives here. Nothing in this package imports Airflow, Spark, Kafka, boto3 or
pyarrow, so that planning an empty run costs milliseconds.
"""
