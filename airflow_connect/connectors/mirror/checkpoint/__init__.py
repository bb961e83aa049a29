"""MirrorCheckpointConnector: offsets of consumer groups, translated to the target cluster.

How a run works: the driver lists the groups of the source cluster and divides them among tasks (`connector`). A task
reads the offset syncs, translates what its groups have committed (`translation`), writes the offsets of groups without
members in the target cluster (`downstream`), and returns a checkpoint for each offset that is new (`task`).
"""
