"""Java for the rest of the package: which one, its jars and class data, and the plugin host.

The plugin host (`host.py`) is a JVM of its own that runs Kafka Connect's Java plugins. It is the child of the process
that uses it, and speaks to that process only.
"""
