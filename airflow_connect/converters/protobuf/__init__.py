"""Protobuf for ProtobufConverter: .proto text to descriptors, descriptors to Connect schemas, messages to values.

`text_parser` and `text_printer` read and write the language; `files` puts a schema and its imports into one pool of
descriptors; `to_connect`, `from_connect`, `reading` and `writing` are the mapping; `columns` reads many messages at
once. Only ProtobufConverter imports this package. Source: Protocol Buffers language specification;
io.confluent.connect.protobuf.ProtobufData (8.1).
"""
