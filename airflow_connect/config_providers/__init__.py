"""Config providers: what stands behind `${provider:path:key}` in the configurations of workers and connectors.

`resolving.py` finds the references of a run and asks the providers, once, before anything else looks at the
configurations. The built-in providers are Kafka's own: a properties file, a folder with one file per key, environment
variables. Airflow's connections and variables are in `airflow_connect.airflow.config_provider`.

Values exist in the memory of the processes of a run only. Configurations that are shown or stored keep the references.
"""
