"""A MirrorMaker 2 properties file with several clusters, as configurations of connectors and workers."""
