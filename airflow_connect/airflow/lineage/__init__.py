"""What a run tells Airflow besides its result: assets, OpenLineage, links, metrics."""
