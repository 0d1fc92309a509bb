"""DuckDB: reading."""
