"""Credentials belong to the app vel_credentials, whose first migration takes their table."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0005_agent_read_only")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Credential")],
            database_operations=[],
        ),
    ]
