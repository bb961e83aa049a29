"""Layer 8: TaskFlow decorators. Airflow knows them as `@task.<name>`."""
