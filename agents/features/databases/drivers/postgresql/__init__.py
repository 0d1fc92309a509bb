"""PostgreSQL: reading, trying and writing."""
