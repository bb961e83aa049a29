"""Moves connectors, with their offsets, from a running Kafka Connect cluster to an installation of ours.

`judging` says for each connector what would change; `moving` moves one, and lets the cluster go on if that fails.
`aiven_s3` names the keys that stand here for those of Aiven's S3 sink.
"""
