"""Functions of databases for other features."""

from agents.features.databases.actions import save_connection, save_own_connection, seal_url
from agents.features.databases.models import DatabaseConnection

__all__ = ["DatabaseConnection", "save_connection", "save_own_connection", "seal_url"]
