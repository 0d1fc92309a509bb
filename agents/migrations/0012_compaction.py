import agents.models.json_text
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0011_structured_output'),
    ]

    operations = [
        migrations.CreateModel(
            name='Compaction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('from_run', models.PositiveIntegerField(default=0)),
                ('from_turn', models.PositiveIntegerField(default=0)),
                ('clip_run', models.PositiveIntegerField(default=0)),
                ('clip_turn', models.PositiveIntegerField(default=0)),
                ('clip_bytes', models.PositiveIntegerField(default=0)),
                ('until_run', models.PositiveIntegerField()),
                ('until_turn', models.PositiveIntegerField()),
                ('kept_bytes', models.PositiveIntegerField()),
                ('by', models.CharField(choices=[('model', 'the model'), ('journal', 'Vel, from the journal'), ('clipping', 'nobody: long texts were cut')], max_length=10)),
                ('summary', models.TextField(blank=True)),
                ('opening', models.TextField(blank=True, help_text='What the model reads in place of what is left out.')),
                ('files', models.JSONField(default=list, help_text='Files that were written in what is left out.')),
                ('message_files', models.JSONField(default=dict, help_text='Where messages lie that were cut, by the number of their run.')),
                ('tokens_before', models.PositiveIntegerField()),
                ('tokens_after', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compactions', to='agents.run')),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compactions', to='agents.thread')),
            ],
            options={
                'ordering': ['thread', 'number'],
            },
        ),
        migrations.AlterField(
            model_name='epoch',
            name='head',
            field=agents.models.json_text.JSONTextField(help_text='Its bytes are sent: the order of keys is part of them.'),
        ),
        migrations.AddConstraint(
            model_name='compaction',
            constraint=models.UniqueConstraint(fields=('thread', 'number'), name='compaction_number'),
        ),
    ]
