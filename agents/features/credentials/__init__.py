"""Credentials of other services, which agents use for the people who run them.

A person connects a service on the page Connections or through the REST API, and an operator
connects one for everybody in the admin. The token is stored encrypted and is never shown again.
Features that use another service add a card for it (`connections.CARDS`).
"""
