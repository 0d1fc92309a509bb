"""Inbound webhooks: signed requests of other programs start runs, in the name of the owner.

A person makes a webhook on the page Webhooks or through the REST API, and an operator in the admin.
Requests come in at `door`. What they lead to is kept, and the same request again starts nothing.
"""
