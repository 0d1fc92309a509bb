import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from agents.create_models import CreateModels


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
    ]

    operations = [
        CreateModels(
            models=[migrations.CreateModel(
                name='Todo',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='todos', to='agents.thread')),
                    ('position', models.PositiveIntegerField()),
                    ('content', models.TextField()),
                    ('active_form', models.TextField(blank=True)),
                    ('status', models.CharField(choices=[('pending', 'pending'), ('in_progress', 'in progress'), ('completed', 'completed'), ('blocked', 'blocked')], default='pending', max_length=20)),
                    ('note', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('completed_at', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'ordering': ['thread', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('thread', 'position'), name='todo_position')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='TodoHeading',
                fields=[
                    ('thread', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='agents.thread')),
                    ('current_task', models.TextField()),
                ],
            )],
        ),
    ]
