import django.db.models.deletion
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
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'ordering': ['thread', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('thread', 'position'), name='todo_position')],
                    'indexes': [],
                },
            )],
        ),
    ]
