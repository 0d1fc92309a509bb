import agents.models.json_text
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0019_uploads'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='toolkit',
            field=models.CharField(blank=True, editable=False, help_text='Names the tools of the Python program that it belongs to.', max_length=64, default=''),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name='MiddlewareState',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('state', agents.models.json_text.JSONTextField()),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='middleware_states', to='agents.thread')),
            ],
            options={
                'ordering': ['thread', 'name'],
                'constraints': [models.UniqueConstraint(fields=('thread', 'name'), name='middleware_state_name')],
            },
        ),
    ]
