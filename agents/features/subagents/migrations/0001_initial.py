import django.core.validators
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
                name='Subagent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='subagents', to='agents.agent')),
                    ('name', models.SlugField(max_length=64)),
                    ('description', models.CharField(help_text='The description that the agent reads to choose a subagent.', max_length=300)),
                    ('system_prompt', models.TextField(blank=True)),
                    ('provider', models.CharField(blank=True, max_length=50)),
                    ('model', models.CharField(blank=True, max_length=200)),
                    ('tools', models.JSONField(blank=True, help_text='Names of its tools, for example ["ls", "read_file"]. Empty: the tools of its agent.', null=True)),
                    ('skills', models.JSONField(blank=True, default=list, help_text='Skills of its agent that are loaded at its start, for example ["data-query"]; it has only these. Empty: all skills of its agent, none of them loaded.')),
                    ('read_only', models.BooleanField(default=False, help_text="It can read its parent's workspace. It and its commands cannot change files.")),
                    ('max_turns', models.PositiveIntegerField(default=50, validators=[django.core.validators.MinValueValidator(1)])),
                    ('max_tokens', models.PositiveBigIntegerField(blank=True, null=True)),
                    ('max_cost', models.DecimalField(blank=True, decimal_places=6, help_text='US dollars.', max_digits=12, null=True)),
                    ('max_seconds', models.PositiveIntegerField(blank=True, null=True)),
                ],
                options={
                    'ordering': ['name'],
                    'constraints': [models.UniqueConstraint(fields=('agent', 'name'), name='subagent_name_per_agent')],
                    'indexes': [],
                },
            )],
        ),
    ]
