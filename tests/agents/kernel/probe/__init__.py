"""A feature whose middleware is what a test puts into it."""
