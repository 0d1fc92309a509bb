"""Inbound webhooks: signed requests of other programs start runs, in the name of the owner.

A person creates a webhook on the page Webhooks or through the REST API, and an operator in the
admin. `door` receives the requests. Their results are stored, and a repeated request starts no run.
"""
