"""A small shop whose sessions and products are in one of four stores: dbm, SQLite, MariaDB, PostgreSQL.

``site`` answers; ``stores`` says what a store does and opens one; ``products`` is the sample data.
"""
