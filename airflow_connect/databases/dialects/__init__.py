"""What differs from database to database. `lookup.py` finds the dialect by SQLAlchemy's name of the database."""
