"""Files of values: those of Confluent's sinks, of our sinks without `store.kafka.records`, and of any other program."""
