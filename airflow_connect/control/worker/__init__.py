"""`airflow-connect worker`: serves the REST API, and runs what is registered in bounded rounds."""
