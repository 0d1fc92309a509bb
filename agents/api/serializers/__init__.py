"""Bodies and queries as they are read, rows as they are shown."""
