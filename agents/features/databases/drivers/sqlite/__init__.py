"""SQLite: reading, trying and writing."""
