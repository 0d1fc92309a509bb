"""Databases belong to the app vel_databases, whose first migration takes their tables."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0013_skills")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name="agent", name="databases"),
                migrations.DeleteModel(name="DatabaseConnection"),
            ],
            database_operations=[],
        ),
    ]
