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
                name='ProviderKey',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('provider', models.CharField(help_text='The company, for example openai.', max_length=20, unique=True)),
                    ('origin', models.CharField(help_text='Scheme, host and port of the server that gets the key.', max_length=300)),
                    ('secret', agents.secret_text.SecretTextField(editable=False)),
                    ('set_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('set_at', models.DateTimeField(editable=False)),
                ],
                options={
                    'ordering': ['provider'],
                    'permissions': [('manage_provider_keys', 'Can set, test and remove the keys of model providers')],
                    'default_permissions': (),
                    'constraints': [],
                    'indexes': [],
                },
            )],
        ),
    ]
