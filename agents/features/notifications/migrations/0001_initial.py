import agents.ids
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
                name='Notification',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to='vel_notifications.notificationtarget')),
                    ('type', models.CharField(help_text='The type of the notice, for example approval.requested.', max_length=50)),
                    ('subject_id', models.CharField(help_text='The id of the request or other row of the notice.', max_length=64)),
                    ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents.run')),
                    ('status', models.CharField(choices=[('pending', 'pending'), ('delivered', 'delivered'), ('given_up', 'given up'), ('obsolete', 'not needed any more')], default='pending', max_length=10)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                    ('error', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('delivered_at', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'ordering': ['created_at'],
                    'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['next_attempt_at'], name='notification_due')],
                    'constraints': [models.UniqueConstraint(fields=('target', 'type', 'subject_id'), name='notification_once')],
                },
            ), migrations.CreateModel(
                name='NotificationTarget',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=[('webhook', 'webhook'), ('email', 'e-mail')], max_length=10)),
                    ('address', models.CharField(help_text='The URL, or the e-mail address.', max_length=500)),
                    ('secret', models.CharField(blank=True, help_text='The key for signatures of webhooks. Empty: a key is generated.', max_length=200)),
                    ('agent', models.ForeignKey(blank=True, help_text='Only messages about this agent. Empty: all agents.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notification_targets', to='agents.agent')),
                    ('is_active', models.BooleanField(default=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['created_at'],
                    'indexes': [],
                    'constraints': [],
                },
            )],
        ),
    ]
