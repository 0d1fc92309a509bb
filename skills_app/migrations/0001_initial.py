import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agents.create_models import CreateModels

# Tokens are only a-z, 0-9 and _. No tokenizer may split or fold them.
SQLITE = [
    """
CREATE VIRTUAL TABLE skills_app_skillindex_fts USING fts5(
    tokens, content='skills_app_skillindexentry', content_rowid='skill_id',
    tokenize="unicode61 remove_diacritics 0 tokenchars '_'", detail='none'
)""",
    """
CREATE TRIGGER skills_app_skillindex_insert AFTER INSERT ON skills_app_skillindexentry BEGIN
    INSERT INTO skills_app_skillindex_fts(rowid, tokens) VALUES (new.skill_id, new.tokens);
END""",
    """
CREATE TRIGGER skills_app_skillindex_delete AFTER DELETE ON skills_app_skillindexentry BEGIN
    INSERT INTO skills_app_skillindex_fts(skills_app_skillindex_fts, rowid, tokens)
    VALUES ('delete', old.skill_id, old.tokens);
END""",
    """
CREATE TRIGGER skills_app_skillindex_update AFTER UPDATE ON skills_app_skillindexentry BEGIN
    INSERT INTO skills_app_skillindex_fts(skills_app_skillindex_fts, rowid, tokens)
    VALUES ('delete', old.skill_id, old.tokens);
    INSERT INTO skills_app_skillindex_fts(rowid, tokens) VALUES (new.skill_id, new.tokens);
END""",
]
POSTGRESQL = [
    "ALTER TABLE skills_app_skillindexentry ADD COLUMN lexemes tsvector "
    "GENERATED ALWAYS AS (array_to_tsvector(string_to_array(tokens, ' '))) STORED",
    "CREATE INDEX skills_app_skillindex_lexemes ON skills_app_skillindexentry USING gin (lexemes)",
]


def add_full_text(apps, schema_editor):
    """Add the full-text index that the database in use has."""
    statements = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
    for statement in statements.get(schema_editor.connection.vendor, []):
        schema_editor.execute(statement)


def remove_full_text(apps, schema_editor):
    """Drop what does not disappear together with the tables of the app."""
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TABLE skills_app_skillindex_fts")


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels(
            models=[migrations.CreateModel(
                name='ActiveSkill',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents.thread')),
                    ('name', models.CharField(max_length=64)),
                    ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='skills_app.skillversion')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['id'],
                    'constraints': [models.UniqueConstraint(fields=('thread', 'name'), name='active_skill_once')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='AgentSkill',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='skill_choices', to='agents.agent')),
                    ('skill', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='choices', to='skills_app.skill')),
                    ('enabled', models.BooleanField()),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('agent', 'skill'), name='agent_skill_once')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='RunSkillSet',
                fields=[
                    ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='pinned', serialize=False, to='agents.run')),
                    ('skill_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='skills_app.skillset')),
                ],
                options={
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='Skill',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('scope', models.CharField(max_length=1100)),
                    ('agent', models.ForeignKey(blank=True, help_text='The agent whose own skill it is; empty for shared ones.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='own_skills', to='agents.agent')),
                    ('name', models.CharField(max_length=64)),
                    ('description', models.CharField(max_length=1024)),
                    ('version', models.PositiveIntegerField(help_text='The number of the latest version, also of one that deleted the skill.')),
                    ('current', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='skills_app.skillversion')),
                    ('is_deleted', models.BooleanField(default=False)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'ordering': ['name', 'scope'],
                    'permissions': [('manage_library', 'Can import, change and delete skills of the library'), ('review_skill', 'Can accept versions of skills, put them into quarantine, and release them')],
                    'constraints': [models.UniqueConstraint(fields=('scope', 'name'), name='skill_name_per_scope')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='SkillBlob',
                fields=[
                    ('sha256', models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ('data', models.BinaryField()),
                    ('size_bytes', models.PositiveBigIntegerField()),
                ],
                options={
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='SkillFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='skills_app.skillversion')),
                    ('path', models.CharField(max_length=500)),
                    ('blob', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='skills_app.skillblob')),
                    ('executable', models.BooleanField(default=False)),
                ],
                options={
                    'ordering': ['version', 'path'],
                    'constraints': [models.UniqueConstraint(fields=('version', 'path'), name='skill_file_path')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='SkillIndexEntry',
                fields=[
                    ('skill', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='index_entry', serialize=False, to='skills_app.skill')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='skills_app.skillversion')),
                    ('analysis', models.CharField(help_text='Which analysis made the tokens.', max_length=16)),
                    ('tokens', models.TextField(help_text='Stems in a-z, 0-9 and _, with blanks between.')),
                    ('names', models.TextField(help_text='Name, description and tags, folded.')),
                    ('analysed', models.TextField(help_text='The skill as the ranking reads it, as JSON.')),
                ],
                options={
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='SkillSet',
                fields=[
                    ('id', models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='SkillSetEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('skill_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='skills_app.skillset')),
                    ('position', models.PositiveIntegerField()),
                    ('name', models.CharField(max_length=64)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='skills_app.skillversion')),
                ],
                options={
                    'ordering': ['skill_set', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('skill_set', 'name'), name='skill_set_name')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='SkillUse',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='skill_uses', to='agents.run')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='skills_app.skillversion')),
                    ('kind', models.CharField(choices=[('loaded', 'loaded'), ('mounted', 'SKILL.md read as a file'), ('file', 'file read or run'), ('deactivated', 'deactivated')], max_length=20)),
                    ('path', models.CharField(blank=True, max_length=500)),
                    ('call_id', models.CharField(blank=True, max_length=200)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['id'],
                    'indexes': [models.Index(fields=['version', 'kind'], name='skill_use_version')],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='SkillVersion',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('skill', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='skills_app.skill')),
                    ('number', models.PositiveIntegerField()),
                    ('content', models.TextField(help_text='Its SKILL.md. Null: the skill was deleted.', null=True)),
                    ('content_hash', models.CharField(blank=True, db_index=True, help_text='SHA-256 of all its files, as `skills_app.library.package.hash_files` has it.', max_length=64)),
                    ('head', models.JSONField(default=dict)),
                    ('file_count', models.PositiveIntegerField(default=0)),
                    ('size_bytes', models.PositiveBigIntegerField(default=0)),
                    ('findings', models.JSONField(blank=True, default=list)),
                    ('trust', models.CharField(choices=[('built-in', 'built-in'), ('reviewed', 'reviewed'), ('local', 'local directory'), ('imported', 'imported'), ('quarantined', 'quarantined')], max_length=20)),
                    ('reviewed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('reviewed_at', models.DateTimeField(blank=True, null=True)),
                    ('accepted_at', models.DateTimeField(blank=True, help_text='When agents first got it. Null: it has only waited.', null=True)),
                    ('reason', models.TextField(blank=True)),
                    ('source', models.CharField(max_length=20)),
                    ('origin', models.CharField(blank=True, help_text='The file or address that it was imported from.', max_length=500)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['skill', '-number'],
                    'constraints': [models.UniqueConstraint(fields=('skill', 'number'), name='skill_version_number')],
                    'indexes': [],
                },
            )],
        ),
        migrations.RunPython(add_full_text, remove_full_text),
    ]
