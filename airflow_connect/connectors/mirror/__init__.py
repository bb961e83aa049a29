"""The mirror source: topics of another Kafka cluster, as MirrorMaker 2's MirrorSourceConnector copies them (KIP-382).

How a run works: the driver selects topics (`selection`, `policy`), creates and configures their copies (`topics`),
reads the ends of the source cluster's logs, compares them with the committed offsets (`offsets`), and divides the
ranges among tasks (`work`, `connector`). A task reads its ranges and returns batches in columns, or in records where
they have headers (`task`). Offsets have MirrorMaker 2's form, so either program can continue where the other stopped.
"""
