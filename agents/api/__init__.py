"""The REST API, version 1: authentication, shapes and statuses over selectors and services.

Nothing is decided here. A view reads its query or body, asks a selector what the person may see,
calls one service, and shows the result; every refusal becomes a problem document in `problems`.
"""
