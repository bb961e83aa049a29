"""The S3 sink: Kafka topics to objects in a bucket, configured as Confluent's S3 sink is."""
