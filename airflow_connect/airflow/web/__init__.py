"""What an Airflow API server shows of Kafka Connect: which installations, to whom, and what is recorded of changes.

Airflow does not protect the applications of plugins. Every request therefore passes `access.visitor_of`, and every
change `same_site.refuse_other_sites`, a right of `access.Right` and `audit.record`, in this order.

Import the modules of this package only in an API server: they load FastAPI and Airflow's models.
"""
