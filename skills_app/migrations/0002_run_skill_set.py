"""Which skills a run has is said by a table of this app, not by a column of the run."""

import django.db.models.deletion
from django.db import migrations, models

KEPT = "skills_app_runskillset_kept"


def take_kept(apps, schema_editor):
    """Take what the column of the run had, which agents.0013_skills kept."""
    with schema_editor.connection.cursor() as cursor:
        tables = schema_editor.connection.introspection.table_names(cursor)
    if KEPT in tables:
        schema_editor.execute(
            "INSERT INTO skills_app_runskillset (run_id, skill_set_id)"
            f" SELECT run_id, skill_set_id FROM {KEPT}"
        )
        schema_editor.execute(f"DROP TABLE {KEPT}")


def keep(apps, schema_editor):
    if apps.get_model("skills_app", "RunSkillSet").objects.exists():
        schema_editor.execute(
            f"CREATE TABLE {KEPT} AS SELECT run_id, skill_set_id FROM skills_app_runskillset"
        )


class Migration(migrations.Migration):
    dependencies = [("skills_app", "0001_initial"), ("agents", "0013_skills")]

    operations = [
        migrations.CreateModel(
            name="RunSkillSet",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="pinned",
                        serialize=False,
                        to="agents.run",
                    ),
                ),
                (
                    "skill_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="skills_app.skillset",
                    ),
                ),
            ],
        ),
        migrations.RunPython(take_kept, keep),
    ]
