"""The base of the REST API: views, authentication, problems, pagination and operations."""
