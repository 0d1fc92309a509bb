"""When agents first got a version: what only waited is never gone back to."""

from django.db import migrations, models
from django.db.models import F


def accept_what_was(apps, schema_editor):
    versions = apps.get_model("skills_app", "SkillVersion").objects
    for skill in apps.get_model("skills_app", "Skill").objects.select_related("current"):
        if skill.current is not None:
            versions.filter(skill=skill, number__lte=skill.current.number).update(
                accepted_at=F("created_at")
            )


class Migration(migrations.Migration):

    dependencies = [
        ("skills_app", "0004_skill_scope"),
    ]

    operations = [
        migrations.AddField(
            model_name="skillversion",
            name="accepted_at",
            field=models.DateTimeField(
                null=True,
                blank=True,
                help_text="When agents first got it. Null: it has only waited.",
            ),
        ),
        migrations.RunPython(accept_what_was, migrations.RunPython.noop),
    ]
