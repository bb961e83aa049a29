"""What each page shows, computed from what Kafka and Airflow hold; templates only place it."""
