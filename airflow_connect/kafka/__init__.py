"""Layer 5: the only package that imports confluent_kafka.

clients/   short-lived clients with bounded waits, Java's key names -> librdkafka's, Kafka's errors -> our own
admin/     topics and consumer groups: find, create, query; where partitions begin and end
reading/   the executors' reader of half-open offset ranges, in records or in columns; dead letters
writing/   records and offsets in one transaction; what a source's task writes with
state/     state topics: our own (runs_topic.py) and Kafka Connect's
"""
