"""What waits in a triggerer. The parts without Airflow are in `airflow_connect.observe.watches`."""
