"""Runs of many days in one database: a SQLite file, or a PostgreSQL server.

`connection` opens it and brings an older one up to date, `importing` puts runs in, `queries` answers what is asked of
it. What a run measured lies in its own folder in any case; the database is made of such folders, and can be again.
"""
