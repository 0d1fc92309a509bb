import agents.ids
import django.db.models.deletion
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
                name='Schedule',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=100)),
                    ('owner', models.ForeignKey(help_text="The owner of its runs. The owner's permissions and limits apply.", on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to=settings.AUTH_USER_MODEL)),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='agents.agent')),
                    ('thread_policy', models.CharField(choices=[('new', 'a new thread each time'), ('one', 'one thread for all runs')], default='new', max_length=10)),
                    ('thread', models.ForeignKey(blank=True, editable=False, help_text='The thread of all its runs, after the first run.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.thread')),
                    ('is_enabled', models.BooleanField(default=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('message', models.TextField(help_text='{{ date }}, {{ time }}, {{ weekday }} and {{ schedule }} are replaced by their values.')),
                    ('cron', models.CharField(blank=True, help_text='Minute, hour, day of month, month, weekday: 30 8 * * mon-fri.', max_length=100)),
                    ('interval_seconds', models.PositiveIntegerField(blank=True, help_text='The seconds between two times, instead of cron.', null=True)),
                    ('time_zone', models.CharField(default='UTC', help_text='The time zone of cron, for example Europe/Vienna.', max_length=64)),
                    ('overlap', models.CharField(choices=[('skip', 'skip this time'), ('queue', 'wait for its end')], default='skip', help_text='What happens if the previous run has not ended.', max_length=10)),
                    ('ends_at', models.DateTimeField(blank=True, help_text='The end of the schedule.', null=True)),
                    ('due_at', models.DateTimeField(editable=False, null=True)),
                    ('next_at', models.DateTimeField(editable=False, null=True)),
                ],
                options={
                    'ordering': ['name', 'id'],
                    'abstract': False,
                    'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='schedule_next_at')],
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cron', ''), ('interval_seconds__isnull', False)), models.Q(models.Q(('cron', ''), _negated=True), ('interval_seconds__isnull', True)), _connector='OR'), name='schedule_cron_or_interval', violation_error_message='Give either a cron expression or an interval.')],
                },
            ), migrations.CreateModel(
                name='ScheduleFiring',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='firings', to='vel_schedules.schedule')),
                    ('due_at', models.DateTimeField()),
                    ('outcome', models.CharField(choices=[('started', 'started'), ('skipped', 'skipped'), ('refused', 'not started'), ('failed', 'failed')], max_length=10)),
                    ('reason', models.CharField(blank=True, max_length=50)),
                    ('detail', models.TextField(blank=True)),
                    ('missed', models.PositiveIntegerField(default=0, help_text='Missed times before this one, for example after downtime.')),
                    ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.run')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['-id'],
                    'constraints': [models.UniqueConstraint(fields=('schedule', 'due_at'), name='firing_once')],
                    'indexes': [],
                },
            )],
        ),
    ]
