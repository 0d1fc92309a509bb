import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models

from agents.create_models import CreateModels


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels(
            models=[migrations.CreateModel(
                name='MemoryEditRequest',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_edit_requests', to='agents.agent')),
                    ('person', models.ForeignKey(blank=True, help_text='The only person who sees and decides it: a change of a file of `me/`.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.run')),
                    ('approval', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memory_edit', to='agents.approvalrequest')),
                    ('path', models.CharField(max_length=200)),
                    ('operation', models.CharField(choices=[('write', 'write'), ('append', 'append'), ('delete', 'delete'), ('restore', 'restore'), ('import', 'import')], max_length=10)),
                    ('previous_content', models.TextField(blank=True, null=True)),
                    ('base_revision', models.PositiveIntegerField(default=0)),
                    ('proposed_content', models.TextField(blank=True, null=True)),
                    ('asked', models.JSONField(default=dict, help_text='content, old_text and replace_all, as the agent gave them.')),
                    ('reason', models.TextField(blank=True)),
                    ('provenance', models.JSONField(default=dict, help_text='step, and sources: texts by others that the run had read.')),
                    ('warnings', models.JSONField(default=list, help_text="Sentences, such as about the memory's size.")),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('purged_at', models.DateTimeField(blank=True, help_text='When its contents and its reason were erased.', null=True)),
                ],
                options={
                    'ordering': ['-created_at'],
                    'base_manager_name': 'every',
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(models.Q(('path__startswith', 'me/')), ('person__isnull', False)), models.Q(models.Q(('path__startswith', 'me/'), _negated=True), ('person__isnull', True)), _connector='OR'), name='memory_edit_is_somebodys')],
                    'indexes': [],
                },
                managers=[
                    ('objects', django.db.models.manager.Manager()),
                    ('every', django.db.models.manager.Manager()),
                ],
            ), migrations.CreateModel(
                name='MemoryFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_files', to='agents.agent')),
                    ('person', models.ForeignKey(blank=True, help_text='The only person who reads and changes it: a file of `me/`.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('path', models.CharField(max_length=200)),
                    ('content', models.TextField()),
                    ('content_type', models.CharField(default='text/markdown', max_length=100)),
                    ('size_bytes', models.PositiveIntegerField()),
                    ('revision', models.PositiveIntegerField(help_text='The number of its latest revision.')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'ordering': ['agent', 'path'],
                    'base_manager_name': 'every',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('person__isnull', True)), fields=('agent', 'path'), name='memory_file_path'), models.UniqueConstraint(fields=('agent', 'person', 'path'), name='memory_file_of_person'), models.CheckConstraint(condition=models.Q(models.Q(models.Q(('path__startswith', 'me/')), ('person__isnull', False)), models.Q(models.Q(('path__startswith', 'me/'), _negated=True), ('person__isnull', True)), _connector='OR'), name='memory_file_is_somebodys')],
                    'indexes': [],
                },
                managers=[
                    ('objects', django.db.models.manager.Manager()),
                    ('every', django.db.models.manager.Manager()),
                ],
            ), migrations.CreateModel(
                name='MemoryRevision',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_revisions', to='agents.agent')),
                    ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('path', models.CharField(max_length=200)),
                    ('number', models.PositiveIntegerField()),
                    ('operation', models.CharField(choices=[('write', 'write'), ('append', 'append'), ('delete', 'delete'), ('restore', 'restore'), ('import', 'import')], max_length=10)),
                    ('content', models.TextField(help_text='Null: the file was deleted, or purged.', null=True)),
                    ('sha256', models.CharField(blank=True, max_length=64)),
                    ('size_bytes', models.PositiveIntegerField(default=0)),
                    ('reason', models.TextField(blank=True)),
                    ('source', models.CharField(help_text='Where the change came from, such as approval or web.', max_length=20)),
                    ('edit_request', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='revisions', to='memory.memoryeditrequest')),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('purged_at', models.DateTimeField(blank=True, help_text='When its content and its reason were erased.', null=True)),
                ],
                options={
                    'ordering': ['agent', 'path', '-number'],
                    'base_manager_name': 'every',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('person__isnull', True)), fields=('agent', 'path', 'number'), name='memory_revision_number'), models.UniqueConstraint(fields=('agent', 'person', 'path', 'number'), name='memory_revision_of_person'), models.CheckConstraint(condition=models.Q(models.Q(models.Q(('path__startswith', 'me/')), ('person__isnull', False)), models.Q(models.Q(('path__startswith', 'me/'), _negated=True), ('person__isnull', True)), _connector='OR'), name='memory_revision_is_somebodys')],
                    'indexes': [],
                },
                managers=[
                    ('objects', django.db.models.manager.Manager()),
                    ('every', django.db.models.manager.Manager()),
                ],
            )],
        ),
    ]
