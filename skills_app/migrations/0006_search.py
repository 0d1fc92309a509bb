"""The index of skills, for the full-text search of the database in use."""

import django.db.models.deletion
from django.db import migrations, models

# Tokens are only a-z, 0-9 and _, which no tokenizer may take apart or fold.
SQLITE = """
CREATE VIRTUAL TABLE skills_app_skillindex_fts USING fts5(
    tokens, content='skills_app_skillindexentry', content_rowid='skill_id',
    tokenize="unicode61 remove_diacritics 0 tokenchars '_'", detail='none'
);
CREATE TRIGGER skills_app_skillindex_insert AFTER INSERT ON skills_app_skillindexentry BEGIN
    INSERT INTO skills_app_skillindex_fts(rowid, tokens) VALUES (new.skill_id, new.tokens);
END;
CREATE TRIGGER skills_app_skillindex_delete AFTER DELETE ON skills_app_skillindexentry BEGIN
    INSERT INTO skills_app_skillindex_fts(skills_app_skillindex_fts, rowid, tokens)
    VALUES ('delete', old.skill_id, old.tokens);
END;
CREATE TRIGGER skills_app_skillindex_update AFTER UPDATE ON skills_app_skillindexentry BEGIN
    INSERT INTO skills_app_skillindex_fts(skills_app_skillindex_fts, rowid, tokens)
    VALUES ('delete', old.skill_id, old.tokens);
    INSERT INTO skills_app_skillindex_fts(rowid, tokens) VALUES (new.skill_id, new.tokens);
END;
"""
SQLITE_BACK = """
DROP TRIGGER IF EXISTS skills_app_skillindex_insert;
DROP TRIGGER IF EXISTS skills_app_skillindex_delete;
DROP TRIGGER IF EXISTS skills_app_skillindex_update;
DROP TABLE IF EXISTS skills_app_skillindex_fts;
"""
POSTGRESQL = [
    "ALTER TABLE skills_app_skillindexentry ADD COLUMN lexemes tsvector "
    "GENERATED ALWAYS AS (array_to_tsvector(string_to_array(tokens, ' '))) STORED",
    "CREATE INDEX skills_app_skillindex_lexemes ON skills_app_skillindexentry USING gin (lexemes)",
]


def add_full_text(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for statement in _statements(SQLITE):
                cursor.execute(statement)
        elif connection.vendor == "postgresql":
            for statement in POSTGRESQL:
                cursor.execute(statement)


def remove_full_text(apps, schema_editor):
    connection = schema_editor.connection
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for statement in _statements(SQLITE_BACK):
                cursor.execute(statement)


def _statements(script):
    """A statement ends with a semicolon at the end of a line that is not inside BEGIN … END."""
    statement = []
    for line in script.strip().splitlines():
        statement.append(line)
        if line.endswith(";") and not line.startswith("    "):
            yield "\n".join(statement)
            statement = []


class Migration(migrations.Migration):

    dependencies = [
        ('skills_app', '0005_version_accepted_at'),
    ]

    operations = [
        migrations.CreateModel(
            name='SkillIndexEntry',
            fields=[
                ('skill', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='index_entry', serialize=False, to='skills_app.skill')),
                ('analysis', models.CharField(help_text='Which analysis made the tokens.', max_length=16)),
                ('tokens', models.TextField(help_text='Stems in a-z, 0-9 and _, with blanks between.')),
                ('names', models.TextField(help_text='Name, description and tags, folded.')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='skills_app.skillversion')),
            ],
        ),
        migrations.RunPython(add_full_text, remove_full_text),
    ]
