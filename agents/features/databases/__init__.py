"""Databases that agents query: SQLite, DuckDB, PostgreSQL, MySQL, and writes after approval.

Operators define connections in the admin and give them to agents; programs and the command line
give their own. It adds four tools, the field `databases` of agents, an endpoint, and a command.
"""
