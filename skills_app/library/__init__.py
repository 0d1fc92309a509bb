"""Read, check, search, export and unpack skill packages, without the database."""
