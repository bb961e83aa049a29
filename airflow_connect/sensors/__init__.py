"""Sensors for connectors and topics. Each looks only: it joins no group, commits nothing and starts no JVM."""
