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
                name='DatabaseConnection',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('name', models.CharField(help_text='The name for agents, for example shop.', max_length=63, validators=[django.core.validators.RegexValidator('\\A[A-Za-z_][A-Za-z0-9_-]{0,62}\\Z', 'Use letters, digits, _ and -. Start with a letter.')])),
                    ('description', models.TextField(blank=True, help_text='A description of its content, for people.', max_length=2000)),
                    ('url', agents.secret_text.SecretTextField(editable=False, verbose_name='URL')),
                    ('dialect', models.CharField(blank=True, editable=False, help_text='The kind of the database.', max_length=20)),
                    ('statement_seconds', models.FloatField(default=30.0, help_text='The maximum seconds of one statement.', validators=[django.core.validators.MinValueValidator(0.1), django.core.validators.MaxValueValidator(600)])),
                    ('max_rows', models.PositiveIntegerField(default=10000, help_text='The maximum rows of one result. Longer results are cut.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000)])),
                    ('max_bytes', models.PositiveIntegerField(default=1000000, help_text='The maximum size of one result, in bytes. Longer results are cut.', validators=[django.core.validators.MinValueValidator(1000), django.core.validators.MaxValueValidator(100000000)])),
                    ('hidden_columns', models.JSONField(blank=True, default=list, help_text='Columns that agents cannot read, for example ["password", "users.email"].')),
                    ('allow_privileged', models.BooleanField(default=False, help_text='Also accept a role that is a superuser or can read files of the server. A role that can only read is safer.')),
                    ('allow_writes', models.BooleanField(default=False, help_text='Agents can request changes of rows. Each statement is tried in a transaction that is rolled back, and requires approval with the changed rows.')),
                    ('allow_routines', models.BooleanField(default=False, help_text='Also accept statements that run functions or triggers of the database. They run in the trial, before an approval, and a rollback may not undo their effects.')),
                    ('agent', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='own_databases', to='agents.agent')),
                    ('owner', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('agents', models.ManyToManyField(editable=False, related_name='databases', to='agents.agent')),
                ],
                options={
                    'verbose_name': 'database connection',
                    'ordering': ['name', 'id'],
                    'permissions': [('configure_database', 'Can define databases and give them to agents'), ('allow_database_writes', 'Can let agents write to a database, each change with approval')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('agent', None)), fields=('name',), name='database_name_shared'), models.UniqueConstraint(fields=('agent', 'name'), name='database_name_of_agent'), models.CheckConstraint(condition=models.Q(models.Q(('agent', None), ('owner', None)), models.Q(('agent__isnull', False), ('owner__isnull', False)), _connector='OR'), name='database_agent_with_owner')],
                    'indexes': [],
                },
            )],
        ),
    ]
