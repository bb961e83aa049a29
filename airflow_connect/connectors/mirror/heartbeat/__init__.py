"""MirrorHeartbeatConnector: one sign of life in each run, which a mirror in the opposite direction replicates."""
