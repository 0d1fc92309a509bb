"""Takes the table of credentials from the app agents, with the permissions that people have."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.ids
import agents.secret_text


def take_permissions(apps, schema_editor):
    """Permissions refer to the content type, so they move with it."""
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="agents", model="credential").update(app_label="vel_credentials")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("agents", "0006_credentials_have_their_own_app"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Credential",
                    fields=[
                        ("id", models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                        ("provider", models.CharField(help_text="The service, as in slack.", max_length=20)),
                        ("secret", agents.secret_text.SecretTextField(editable=False)),
                        ("account", models.CharField(blank=True, editable=False, help_text="Who the service says it is, when it was stored.", max_length=200)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("updated_at", models.DateTimeField(auto_now=True)),
                        ("created_by", models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL)),
                        ("owner", models.ForeignKey(blank=True, help_text="Whose runs use it. Empty: those of all who have none of their own.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name="credentials", to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        "ordering": ["provider", "owner"],
                        "permissions": [("share_credential", "Can store credentials that everybody's runs use")],
                        "constraints": [models.UniqueConstraint(fields=("provider", "owner"), name="credential_of_owner"), models.UniqueConstraint(condition=models.Q(("owner", None)), fields=("provider",), name="credential_shared")],
                    },
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE agents_credential RENAME TO vel_credentials_credential",
                    # Without this app nothing deletes a credential, so none must be left.
                    [
                        "DELETE FROM vel_credentials_credential",
                        "ALTER TABLE vel_credentials_credential RENAME TO agents_credential",
                    ],
                ),
            ],
        ),
        migrations.RunPython(take_permissions, migrations.RunPython.noop),
    ]
