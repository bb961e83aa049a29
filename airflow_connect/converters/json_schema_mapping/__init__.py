"""JSON Schema for JsonSchemaConverter: documents to Connect schemas and back, JSON to values and back.

`references` follows `$ref`, `to_connect` and `from_connect` are the mapping of schemas, `values` that of data, `names`
has the words of both. Source: io.confluent.connect.json.JsonSchemaData (8.1).
"""
