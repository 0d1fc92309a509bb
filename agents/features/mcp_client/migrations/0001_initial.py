import agents.ids
import agents.models.json_text
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
                name='McpServer',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('slug', models.CharField(help_text='The names of its tools start with mcp__SLUG__.', max_length=24, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?\\Z', 'Use small letters, digits and -, 24 at most.')])),
                    ('description', models.TextField(blank=True, help_text='Its purpose, for people.', max_length=2000)),
                    ('enabled', models.BooleanField(default=True, help_text='Off: calls are refused immediately, also in current runs.')),
                    ('transport', models.CharField(choices=[('stdio', 'a program in the sandbox'), ('http', 'streamable HTTP')], default='stdio', max_length=10)),
                    ('command', models.CharField(blank=True, help_text='The program, for example mcp-server-time.', max_length=500)),
                    ('arguments', models.JSONField(blank=True, default=list, help_text='Arguments of the program, for example ["--local-timezone", "UTC"].')),
                    ('toolbox', models.CharField(blank=True, help_text="The toolbox with the program. Empty: the system's Python.", max_length=100)),
                    ('network', models.CharField(choices=[('none', 'none'), ('allowlist', 'allow-list'), ('full', 'any public address')], default='none', max_length=20)),
                    ('allowed_hosts', models.JSONField(blank=True, default=list, help_text='Hosts of the allow-list, for example ["api.example.com"].')),
                    ('sees_files', models.BooleanField(default=False, help_text='It can read the files of the conversation. It cannot change them.')),
                    ('url', models.CharField(blank=True, help_text='For example https://host/mcp.', max_length=500)),
                    ('secret_names', models.JSONField(blank=True, default=list, editable=False)),
                    ('secrets', agents.secret_text.SecretTextField(blank=True, editable=False)),
                    ('call_seconds', models.PositiveSmallIntegerField(default=60, help_text='How long one call may take.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(600)])),
                    ('tools', agents.models.json_text.JSONTextField(default=list, editable=False)),
                    ('pinned_at', models.DateTimeField(blank=True, editable=False, null=True)),
                    ('pinned_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('found', agents.models.json_text.JSONTextField(editable=False, null=True)),
                    ('found_digest', models.CharField(blank=True, editable=False, max_length=64)),
                    ('found_refused', agents.models.json_text.JSONTextField(default=list, editable=False)),
                    ('checked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                    ('problem', models.TextField(blank=True, editable=False)),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'verbose_name': 'MCP server',
                    'ordering': ['slug'],
                    'permissions': [('configure_mcpserver', 'Can define MCP servers and give them to agents'), ('accept_mcp_tools', 'Can accept the tools of MCP servers')],
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='McpState',
                fields=[
                    ('thread', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='mcp_state', serialize=False, to='agents.thread')),
                    ('manifest', models.CharField(blank=True, help_text='Empty: it is larger than the limit of the storage.', max_length=64)),
                    ('stored_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'verbose_name': 'state of MCP programs',
                    'verbose_name_plural': 'states of MCP programs',
                    'ordering': ['thread'],
                    'indexes': [],
                    'constraints': [],
                },
            )],
        ),
    ]
