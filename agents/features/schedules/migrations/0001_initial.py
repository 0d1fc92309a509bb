"""Takes the tables of schedules from the app agents, with the permissions that people have."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.ids

MODELS = ("schedule", "schedulefiring")


def take_permissions(apps, schema_editor):
    """Permissions refer to the content type, so they move with it."""
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="agents", model__in=MODELS).update(app_label="vel_schedules")


def give_permissions_back(apps, schema_editor):
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="vel_schedules").update(app_label="agents")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("agents", "0017_schedules"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Schedule',
                    fields=[
                        ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=100)),
                        ('thread_policy', models.CharField(choices=[('new', 'a new thread each time'), ('one', 'go on in one thread')], default='new', max_length=10)),
                        ('is_enabled', models.BooleanField(default=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('message', models.TextField(help_text='{{ date }}, {{ time }}, {{ weekday }} and {{ schedule }} are filled in.')),
                        ('cron', models.CharField(blank=True, help_text='Minute, hour, day of month, month, weekday: 30 8 * * mon-fri.', max_length=100)),
                        ('interval_seconds', models.PositiveIntegerField(blank=True, help_text='Instead of cron: so many seconds from one to the next.', null=True)),
                        ('time_zone', models.CharField(default='UTC', help_text='As Europe/Vienna: the clock that cron is read by.', max_length=64)),
                        ('overlap', models.CharField(choices=[('skip', 'skip this time'), ('queue', 'wait for its end')], default='skip', help_text='When the run before has not ended.', max_length=10)),
                        ('ends_at', models.DateTimeField(blank=True, help_text='Nothing is due after it.', null=True)),
                        ('due_at', models.DateTimeField(editable=False, null=True)),
                        ('next_at', models.DateTimeField(editable=False, null=True)),
                        ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='agents.agent')),
                        ('owner', models.ForeignKey(help_text="Whose runs they are: the owner's rights and budgets apply.", on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to=settings.AUTH_USER_MODEL)),
                        ('thread', models.ForeignKey(blank=True, editable=False, help_text='The one thread, once it has begun.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.thread')),
                    ],
                    options={
                        'ordering': ['name', 'id'],
                        'abstract': False,
                        'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='schedule_next_at')],
                        'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cron', ''), ('interval_seconds__isnull', False)), models.Q(models.Q(('cron', ''), _negated=True), ('interval_seconds__isnull', True)), _connector='OR'), name='schedule_cron_or_interval', violation_error_message='Give either a cron expression or an interval.')],
                    },
                ),
                migrations.CreateModel(
                    name='ScheduleFiring',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('due_at', models.DateTimeField()),
                        ('outcome', models.CharField(choices=[('started', 'started'), ('skipped', 'skipped'), ('refused', 'not started'), ('failed', 'failed')], max_length=10)),
                        ('reason', models.CharField(blank=True, max_length=50)),
                        ('detail', models.TextField(blank=True)),
                        ('missed', models.PositiveIntegerField(default=0, help_text='Earlier times that this one stands for, such as after downtime.')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.run')),
                        ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='firings', to='vel_schedules.schedule')),
                    ],
                    options={
                        'ordering': ['-id'],
                        'constraints': [models.UniqueConstraint(fields=('schedule', 'due_at'), name='firing_once')],
                    },
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    [f"ALTER TABLE agents_{name} RENAME TO vel_schedules_{name}" for name in MODELS],
                    [
                        # Without this app nothing deletes these rows, so none must be left.
                        'UPDATE agents_run SET "trigger" = NULL WHERE "trigger" IN (SELECT id FROM vel_schedules_schedule)',
                        "DELETE FROM vel_schedules_schedulefiring",
                        "DELETE FROM vel_schedules_schedule",
                        *[f"ALTER TABLE vel_schedules_{name} RENAME TO agents_{name}" for name in MODELS],
                    ],
                ),
            ],
        ),
        migrations.RunPython(take_permissions, give_permissions_back),
    ]
