"""Approval requests do not refer to the memory any more: the app memory refers to them.

The links are kept in a table of their own, in which the migration 0002 of memory finds them. So
they are not lost where the app is not installed now.
"""

from django.db import migrations, models

import agents.models.approval

TABLE = 'memory_links_of_approvals'


def keep(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute('SELECT 1 FROM agents_approvalrequest WHERE memory_edit_id IS NOT NULL LIMIT 1')
        if cursor.fetchone() is not None:
            cursor.execute(
                f'CREATE TABLE {TABLE} AS SELECT id AS approval_id, memory_edit_id AS edit_id '
                'FROM agents_approvalrequest WHERE memory_edit_id IS NOT NULL'
            )


def put_back(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        if TABLE in schema_editor.connection.introspection.table_names(cursor):
            cursor.execute(
                f'UPDATE agents_approvalrequest SET memory_edit_id = (SELECT edit_id FROM {TABLE} '
                'WHERE approval_id = agents_approvalrequest.id) '
                f'WHERE id IN (SELECT approval_id FROM {TABLE})'
            )
            cursor.execute(f'DROP TABLE {TABLE}')


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0011_machine'),
    ]

    operations = [
        migrations.RunPython(keep, put_back),
        migrations.RemoveField(model_name='approvalrequest', name='memory_edit_id'),
        migrations.AlterField(
            model_name='approvalrequest',
            name='kind',
            field=models.CharField(choices=agents.models.approval.request_kinds, default='tool', max_length=20),
        ),
    ]
