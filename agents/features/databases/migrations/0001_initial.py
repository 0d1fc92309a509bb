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
                    ('name', models.CharField(help_text='What agents call it, as shop.', max_length=63, validators=[django.core.validators.RegexValidator('\\A[A-Za-z_][A-Za-z0-9_-]{0,62}\\Z', 'Use letters, digits, _ and -, a letter first.')])),
                    ('description', models.TextField(blank=True, help_text='What is in it, for people.', max_length=2000)),
                    ('url', agents.secret_text.SecretTextField(editable=False, verbose_name='URL')),
                    ('dialect', models.CharField(blank=True, editable=False, help_text='What the URL leads to.', max_length=20)),
                    ('statement_seconds', models.FloatField(default=30.0, help_text='How long one statement may take.', validators=[django.core.validators.MinValueValidator(0.1), django.core.validators.MaxValueValidator(600)])),
                    ('max_rows', models.PositiveIntegerField(default=10000, help_text='Rows that one result may have; more is cut.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000)])),
                    ('max_bytes', models.PositiveIntegerField(default=1000000, help_text='What one result may take; more is cut.', validators=[django.core.validators.MinValueValidator(1000), django.core.validators.MaxValueValidator(100000000)])),
                    ('hidden_columns', models.JSONField(blank=True, default=list, help_text='Columns that agents cannot read, as ["password", "users.email"].')),
                    ('allow_privileged', models.BooleanField(default=False, help_text='Also with a role that is a superuser or could read files of the server. Make a role that may only read instead.')),
                    ('allow_writes', models.BooleanField(default=False, help_text='Agents may ask to change rows. Each statement is tried in a transaction that is rolled back, shown with the rows that it changes, and waits for a person.')),
                    ('allow_routines', models.BooleanField(default=False, help_text='Also statements that run functions or triggers of the database. They run in the trial, before anybody has approved, and can do what no rollback takes back.')),
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
                    'permissions': [('configure_database', 'Can define databases and give them to agents'), ('allow_database_writes', 'Can let agents ask to write to a database')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('agent', None)), fields=('name',), name='database_name_shared'), models.UniqueConstraint(fields=('agent', 'name'), name='database_name_of_agent'), models.CheckConstraint(condition=models.Q(models.Q(('agent', None), ('owner', None)), models.Q(('agent__isnull', False), ('owner__isnull', False)), _connector='OR'), name='database_agent_with_owner')],
                    'indexes': [],
                },
            )],
        ),
    ]
