"""A migration operation that renames a model, and its permissions, so that users keep their rights.

Django renames the table and the content type with a model, but not its permissions.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, router
from django.utils.text import camel_case_to_spaces

ACTIONS = ("add", "change", "delete", "view")


class RenameModelAndPermissions(migrations.RenameModel):
    """The migration must depend on `auth` and `contenttypes`."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        super().database_forwards(app_label, schema_editor, from_state, to_state)
        permission = to_state.apps.get_model("auth", "Permission")
        database = schema_editor.connection.alias
        if not router.allow_migrate_model(database, permission):
            return
        rows = permission.objects.using(database).filter(content_type__app_label=app_label)
        for action in ACTIONS:
            rows.filter(codename=f"{action}_{self.old_name_lower}").update(
                codename=f"{action}_{self.new_name_lower}",
                name=f"Can {action} {camel_case_to_spaces(self.new_name)}",
            )
