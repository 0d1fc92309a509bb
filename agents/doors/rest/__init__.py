"""The base of the REST API: views, authentication, problems, lists, and what operations say."""
