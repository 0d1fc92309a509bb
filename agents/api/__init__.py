"""Version 1 of the REST API: authentication, schemas and status codes over selectors and services.

A view contains no rules. It parses the query or body, gets the visible rows from a selector, calls
one service and serializes the result. `problems` turns each error into a problem document.
"""
