"""Looks at connectors and topics without touching them: no group is joined, nothing is committed, no JVM is started.

A `Watch` is a condition on a `Target`. A `ClusterReader` answers many watches of one cluster in one round of requests,
and a `Poller` lets all waiting parts of a process share one reader.
"""
