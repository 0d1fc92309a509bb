import agents.ids
import agents.secret_text
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agents.create_models import CreateModels


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels(
            models=[migrations.CreateModel(
                name='Credential',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('provider', models.CharField(help_text='The service, for example slack.', max_length=20)),
                    ('owner', models.ForeignKey(blank=True, help_text='The user whose runs use it. Empty: all users without their own.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='credentials', to=settings.AUTH_USER_MODEL)),
                    ('secret', agents.secret_text.SecretTextField(editable=False)),
                    ('account', models.CharField(blank=True, editable=False, help_text='The account, as reported by the service when it was stored.', max_length=200)),
                    ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'ordering': ['provider', 'owner'],
                    'permissions': [('share_credential', 'Can store credentials for the runs of all users')],
                    'constraints': [models.UniqueConstraint(fields=('provider', 'owner'), name='credential_of_owner'), models.UniqueConstraint(condition=models.Q(('owner', None)), fields=('provider',), name='credential_shared')],
                    'indexes': [],
                },
            )],
        ),
    ]
