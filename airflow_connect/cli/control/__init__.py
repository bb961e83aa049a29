"""Commands about registered connectors: what Kafka Connect's REST API can do, and what it cannot.

`target` says where the requests go: to a worker's REST API, or straight to Kafka. Each other module is a command.
"""
