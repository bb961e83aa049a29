"""Databases: what the connectors that read and write tables share.

`keys.py` has the keys with which a connector reaches its database, `settings.py` their typed values. `urls.py`
turns a `connection.url` of JDBC into a URL of SQLAlchemy, with `jdbc_parameters.py` for the parameters of each driver.
`connecting.py` opens connections, `failures.py` tells what a driver's exception means, `identifiers.py` names and
quotes tables and columns, and `dialects` has what differs from database to database.

Names of tables and columns reach a statement only through the quoting of `identifiers.py`, values only as parameters.
"""
