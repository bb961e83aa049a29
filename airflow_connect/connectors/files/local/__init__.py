"""The local sink: Kafka topics to files in a directory, laid out as Confluent's HDFS sink does."""
