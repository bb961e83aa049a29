"""What can be done with connectors: Kafka Connect's operations with its meaning and its texts, for bounded runs.

`views` and `changes` are pure functions of the state; `herder` joins them with the topics.
"""
