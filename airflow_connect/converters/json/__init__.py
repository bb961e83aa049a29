"""JSON as JsonConverter reads and writes it, record by record and in columns."""
