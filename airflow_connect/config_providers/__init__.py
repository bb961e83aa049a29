"""Config providers: resolve `${provider:path:key}` in the configurations of workers and connectors.

`resolving.py` finds the references of a run and asks the providers, once, before anything else uses the configurations.
The built-in providers are Kafka's own: a properties file, a folder with one file per key, environment variables.
Airflow's connections and variables are in `airflow_connect.airflow.config_provider`.

Values exist only in the memory of a run's processes. Configurations that are shown or stored keep the references.
"""
