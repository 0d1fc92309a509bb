"""The base of the REST API: views, authentication, problems, lists, descriptions of methods."""
