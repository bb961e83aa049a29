"""Search sink: records as documents of Elasticsearch or OpenSearch, exactly once: writing again changes nothing.

`keys.py` and `config.py` have the configuration. `targets.py` names the index, data stream or alias of a topic, creates
it, and creates mappings (`mapping.py`). `documents.py` makes bulk actions of records, `columns.py` of records in Arrow
columns; `bulks.py` has both as requests. `sending.py` sends several requests at a time, `answers.py` sorts what the
server says about each document, `client.py` is the HTTP client.

Invariants:
1. A document has an id that depends on its record alone: topic+partition+offset, or the key together with the offset as
   external version. The server refuses an older version, so it does not matter when, and how often, a request arrives.
2. Requests with actions that have no version, and whose ids are keys, are not sent while another one holds the same id.
3. A task ends only when every request has been answered, and every document is written, or reported as errant.
"""
