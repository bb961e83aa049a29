"""Which offsets of the source cluster became which offsets of the target cluster.

A task knows what it has copied (`ledger`) and writes it into MirrorMaker 2's topic with offset syncs when it ends
(`writer`). Checkpoints are computed from that topic (`store`).

A sync is a pair of offsets, and MirrorMaker 2 knows nothing about the records between two of them. Here a sync also has
a header, `airflow_connect.range`: how many records from this one on are consecutive on both sides. 0 means that only
the place before the run is known: every copy of this record, and of those after it, is behind the given offset of the
target. A second header, `airflow_connect.topic.ids`, tells which topics the offsets belong to, because a topic that was
recreated has the same name. MirrorMaker 2 does not read headers, so both programs read the same records.
"""
