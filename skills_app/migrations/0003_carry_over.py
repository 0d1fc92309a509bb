import hashlib

from django.db import migrations


def _carry_over(apps, schema_editor):
    """Give the skills that agents own already a scope, and their versions files and a head."""
    Skill = apps.get_model("skills_app", "Skill")
    SkillVersion = apps.get_model("skills_app", "SkillVersion")
    SkillBlob = apps.get_model("skills_app", "SkillBlob")
    SkillFile = apps.get_model("skills_app", "SkillFile")
    for skill in Skill.objects.all():
        skill.scope = f"agent:{skill.agent_id}"
        for version in SkillVersion.objects.filter(skill=skill).exclude(content=None):
            data = version.content.encode()
            digest = hashlib.sha256(data).hexdigest()
            SkillBlob.objects.get_or_create(
                sha256=digest, defaults={"data": data, "size_bytes": len(data)}
            )
            SkillFile.objects.create(version=version, path="SKILL.md", blob_id=digest)
            line = f"SKILL.md\n0 {digest}\n"
            version.content_hash = hashlib.sha256(line.encode()).hexdigest()
            version.head = _head(skill, version.content)
            version.file_count, version.size_bytes = 1, len(data)
            version.save()
            if version.number == skill.version and not skill.is_deleted:
                skill.current = version
        skill.save()


def _head(skill, content):
    from skills_app.errors import InvalidSkill
    from skills_app.read import read_text

    try:
        return {**read_text(content).head.as_json(), "name": skill.name}
    except InvalidSkill:  # it was good enough for the release that stored it
        return {"name": skill.name, "description": skill.description}


class Migration(migrations.Migration):

    dependencies = [
        ("skills_app", "0002_library"),
    ]

    operations = [
        migrations.RunPython(_carry_over, migrations.RunPython.noop),
    ]
