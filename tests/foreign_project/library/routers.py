from typing import Any

from django.db.models import Model


class StockRouter:
    """Copies are in the database `stock`, all other models in `default`."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return "stock" if model._meta.label == "library.Copies" else None

    db_for_write = db_for_read

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool:
        return (db == "stock") == ((app_label, model_name) == ("library", "copies"))
