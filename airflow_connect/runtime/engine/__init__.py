"""The engine: the only package that imports pyspark. One Spark job per run, one Spark task per Connect task."""
