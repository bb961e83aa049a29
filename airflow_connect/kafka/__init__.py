"""Floor 3: the only package that imports confluent_kafka.

client_config.py   Java client keys -> librdkafka settings, redaction
java_security.py   ... its JAAS and key store part; librdkafka_names.py: what librdkafka knows
clients.py         short-lived clients, bounded waits, Kafka's errors -> api/errors.py
topics.py          which topics a connector reads
watermarks.py      earliest, latest and timed offsets in one call: the frozen end of a run
consumer_group.py  committed offsets of `connect-<name>`, live members
runs_topic.py      our own state: one compact topic, one partition per connector
state_documents.py how a document becomes its records; murmur2.py: Kafka's partition choice
transactions.py    fencing; one transaction holds records and offsets
batch_reader.py    the executors' reader of half-open offset ranges

Invariants: every wait is bounded; clients never print; a client that is only needed for a moment never
joins a group. Importing this package costs nothing: only its modules import confluent_kafka (50 ms).
"""
