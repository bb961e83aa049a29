"""The HDFS sink: Kafka topics to files in HDFS, configured as Confluent's HDFS 2 sink is."""
