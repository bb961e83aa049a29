"""An existing Kafka Connect cluster, through its REST API."""
