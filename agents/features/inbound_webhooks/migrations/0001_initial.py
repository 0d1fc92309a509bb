import agents.ids
import agents.secret_text
import django.core.validators
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
                name='InboundWebhook',
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
                    ('message', models.TextField(help_text='Values such as {{ body.issue.title }} are inserted and marked as data.')),
                    ('signing', models.CharField(choices=[('standard', 'Standard Webhooks'), ('github', 'GitHub (X-Hub-Signature-256)'), ('slack', 'Slack (X-Slack-Signature)'), ('stripe', 'Stripe (Stripe-Signature)')], default='standard', max_length=10)),
                    ('secret', agents.secret_text.SecretTextField(editable=False)),
                    ('former_secret', agents.secret_text.SecretTextField(blank=True, editable=False)),
                    ('former_until', models.DateTimeField(editable=False, help_text='The previous secret is accepted until this time.', null=True)),
                    ('per_minute', models.PositiveIntegerField(default=30, help_text='The maximum of runs that it starts in a minute.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(600)])),
                ],
                options={
                    'ordering': ['name', 'id'],
                    'abstract': False,
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='InboundWebhookDelivery',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('hook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='vel_inbound_webhooks.inboundwebhook')),
                    ('key', models.CharField(max_length=200)),
                    ('body_sha256', models.CharField(max_length=64)),
                    ('size', models.PositiveIntegerField()),
                    ('outcome', models.CharField(choices=[('started', 'started'), ('refused', 'not started')], max_length=10)),
                    ('reason', models.CharField(blank=True, max_length=50)),
                    ('detail', models.TextField(blank=True)),
                    ('repeats', models.PositiveIntegerField(default=0, help_text='How often it was repeated.')),
                    ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.run')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'verbose_name_plural': 'inbound webhook deliveries',
                    'ordering': ['-id'],
                    'constraints': [models.UniqueConstraint(fields=('hook', 'key'), name='delivery_once')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='InboundWebhookRefusal',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('subject', models.CharField(blank=True, max_length=26)),
                    ('day', models.DateField()),
                    ('reason', models.CharField(max_length=20)),
                    ('count', models.PositiveBigIntegerField(default=0)),
                    ('last_at', models.DateTimeField()),
                ],
                options={
                    'ordering': ['-day', 'subject', 'reason'],
                    'constraints': [models.UniqueConstraint(fields=('subject', 'day', 'reason'), name='refusal_of_day')],
                    'indexes': [],
                },
            )],
        ),
    ]
