from airflow_connect.runtime.engine.gateway import spark_jars


def test_jvm_gets_every_jar_of_spark_but_mllib(tmp_path, monkeypatch):
    (tmp_path / "jars").mkdir()
    for name in ("spark-sql_2.13-4.2.0", "spark-mllib_2.13-4.2.0", "spark-mllib-local_2.13-4.2.0", "py4j-0.10.9.9"):
        (tmp_path / "jars" / f"{name}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    names = [jar.stem for jar in spark_jars()]

    assert names == ["py4j-0.10.9.9", "spark-mllib-local_2.13-4.2.0", "spark-sql_2.13-4.2.0"]
