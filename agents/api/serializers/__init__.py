"""Serializers for the bodies, queries and responses of the REST API."""
