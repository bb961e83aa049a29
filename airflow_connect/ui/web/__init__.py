"""What an Airflow API server shows of Kafka Connect: which installations, to whom, and what is recorded of changes.

Airflow does not protect the applications of plugins. So each request is checked for its user and rights (`access`), and
each change for the page that sends it (`same_site`); an audit entry is written before the change is made (`audit`).

Import the modules of this package only in an API server: they load FastAPI and Airflow's models.
"""
