"""Runs say whether they have begun, and epochs what features have in their prompts.

Which skills a run has is kept in a table without constraints, from which skills_app takes it.
"""

from django.db import migrations, models


KEPT = "skills_app_runskillset_kept"


def keep_skill_sets(apps, schema_editor):
    if apps.get_model("agents", "Run").objects.exclude(skill_set=None).exists():
        schema_editor.execute(
            f"CREATE TABLE {KEPT} AS SELECT id AS run_id, skill_set_id FROM agents_run"
            " WHERE skill_set_id IS NOT NULL"
        )


def put_back(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        tables = schema_editor.connection.introspection.table_names(cursor)
    if KEPT in tables:
        schema_editor.execute(
            "UPDATE agents_run SET skill_set_id ="
            f" (SELECT skill_set_id FROM {KEPT} WHERE run_id = agents_run.id)"
            f" WHERE id IN (SELECT run_id FROM {KEPT})"
        )
        schema_editor.execute(f"DROP TABLE {KEPT}")


def note_what_has_begun(apps, schema_editor):
    """Until now, a run that had begun had a set of skills."""
    apps.get_model("agents", "Run").objects.exclude(skill_set=None).update(has_begun=True)


def keep_keys(apps, schema_editor):
    epochs = apps.get_model("agents", "Epoch").objects
    for epoch in epochs.exclude(part_keys=[]).only("part_keys").iterator():
        epoch.part_keys = {"skills": epoch.part_keys}
        epoch.save(update_fields=["part_keys"])
    epochs.filter(part_keys=[]).update(part_keys={})


def keep_list(apps, schema_editor):
    epochs = apps.get_model("agents", "Epoch").objects
    for epoch in epochs.only("part_keys").iterator():
        epoch.part_keys = epoch.part_keys.get("skills", [])
        epoch.save(update_fields=["part_keys"])


class Migration(migrations.Migration):
    dependencies = [("agents", "0012_memory")]

    operations = [
        migrations.RunPython(keep_skill_sets, put_back),
        migrations.AddField(
            model_name="run",
            name="has_begun",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="A driver has settled what it has until its end.",
            ),
        ),
        migrations.RunPython(note_what_has_begun, migrations.RunPython.noop),
        migrations.RemoveField(model_name="run", name="skill_set"),
        migrations.RenameField(model_name="epoch", old_name="active_skills", new_name="part_keys"),
        migrations.AlterField(
            model_name="epoch",
            name="part_keys",
            field=models.JSONField(
                default=dict,
                help_text="What identifies the content of features in the prompt, by their names.",
            ),
        ),
        migrations.RunPython(keep_keys, keep_list),
    ]
