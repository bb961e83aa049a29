"""Layer 8: what an Airflow API server shows of Kafka Connect: pages for people, and the REST API for tools."""
