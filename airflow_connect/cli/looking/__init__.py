"""Commands that look at connectors, topics and files, or copy a range again. They read Kafka and the stores."""
