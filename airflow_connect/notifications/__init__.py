"""Layer 8: Airflow notifiers. They render what a run did, and leave the channel to the notifiers of other providers."""
