"""What agents asked to remember refers to its approval request."""

import django.db.models.deletion
from django.db import migrations, models

TABLE = 'memory_links_of_approvals'


def take(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        if TABLE in schema_editor.connection.introspection.table_names(cursor):
            cursor.execute(
                f'UPDATE memory_memoryeditrequest SET approval_id = (SELECT approval_id FROM {TABLE} '
                'WHERE edit_id = memory_memoryeditrequest.id) '
                f'WHERE id IN (SELECT edit_id FROM {TABLE})'
            )
            cursor.execute(f'DROP TABLE {TABLE}')


def keep(apps, schema_editor):
    """For the migration 0012 of agents. Without the app nobody needs them: see 0001."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            f'CREATE TABLE {TABLE} AS SELECT approval_id, id AS edit_id '
            'FROM memory_memoryeditrequest WHERE approval_id IS NOT NULL'
        )


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0012_memory'),
        ('memory', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='memoryeditrequest',
            name='approval',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memory_edit', to='agents.approvalrequest'),
        ),
        migrations.RunPython(take, keep),
    ]
