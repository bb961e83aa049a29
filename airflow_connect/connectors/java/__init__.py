"""Java connectors of the worker's `plugin.path`: each runs in a JVM of its own, the plugin host, as it does in Connect.

`classes.py` makes a connector class for a Java class; `connector.py`, `source.py` and `sink.py` are what these share.
Converters, transformations and predicates run in the host too. `ending.py` decides when a source has nothing more.
"""
