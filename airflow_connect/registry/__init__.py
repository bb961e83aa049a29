"""Converters that keep their schemas in a Schema Registry: Avro, JSON Schema, Protobuf.

A message is a small prefix with the number of its schema (`wire_format`), then the data. `client` asks the registry,
`connection` is the HTTP below it, `schema_ids` decides under which number a value is written, `subject_names` names
the subject, `settings` defines the configuration keys that all three converters share.
Source: Confluent Schema Registry API v1, io.confluent.kafka.serializers.AbstractKafkaSchemaSerDeConfig.
"""
