"""Connect schemas and values as Avro, both ways: shared by AvroConverter (`registry`) and AvroFormat.

`names` has the names and properties that Confluent's AvroData gives, `mapping` goes from Connect to Avro, `reading`
from Avro to Connect, `parsing` is what fastavro takes of an Avro schema, `columns` decodes many messages at once.
"""
