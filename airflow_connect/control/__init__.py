"""The control plane: what Kafka Connect's REST API does with connectors, over Kafka Connect's own topics.

`state` folds the records of the config and status topics; `herder` has the operations; `rest` answers HTTP; `worker`
runs what is registered, in bounded rounds. Everything that outlives a process is in the topics.
"""
