"""Pages about connectors in Airflow's UI: server-rendered HTML, inline SVG, one style sheet and one small script.

`app.create_app` makes the application that the plugin mounts. Pages ask `asking.Console`, which asks Kafka in threads
of its own and remembers the answers; so no page waits for a broker that is down.
"""
