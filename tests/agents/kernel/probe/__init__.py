"""A feature whose middleware a test sets."""
