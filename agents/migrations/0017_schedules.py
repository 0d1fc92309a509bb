"""Schedules belong to the app vel_schedules, whose first migration takes their tables."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0016_inbound_webhooks")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="ScheduleFiring"),
                migrations.DeleteModel(name="Schedule"),
            ],
            database_operations=[],
        ),
    ]
