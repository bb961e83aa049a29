"""Sinks that write files: to S3, HDFS and directories. `shared` has what they have in common."""
