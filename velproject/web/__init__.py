"""The web server: its limits, its connections to the database, and the headers of responses."""
