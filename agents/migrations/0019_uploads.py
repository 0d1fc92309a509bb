import agents.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0018_forks_and_idempotency'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='has_uploads',
            field=models.BooleanField(default=False, help_text='Files came with the message, or lay there untold.'),
        ),
        migrations.AddField(
            model_name='run',
            name='attachments',
            field=models.TextField(blank=True, default='', help_text='Blocks beside the message, as JSON: its files, pictures by their ids.'),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                ('name', models.CharField(help_text='In user_uploads.', max_length=255)),
                ('path', models.CharField(help_text='As the agent sees it.', max_length=300)),
                ('original_name', models.CharField(help_text='As it came.', max_length=255)),
                ('reader', models.CharField(blank=True, help_text='What makes Markdown of it. Empty: nothing.', max_length=20)),
                ('media_type', models.CharField(help_text='What its name and bytes say.', max_length=100)),
                ('size', models.PositiveBigIntegerField(help_text='Bytes.')),
                ('rendition', models.CharField(blank=True, max_length=255)),
                ('has_rendition', models.BooleanField(default=False)),
                ('note', models.CharField(blank=True, help_text='Why there is no Markdown, or it is not shown.', max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(blank=True, help_text="Whose message tells of it. Null: the next one's.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='uploads', to='agents.run')),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='agents.thread')),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('thread', 'name'), name='upload_name')],
            },
        ),
        migrations.CreateModel(
            name='MessageImage',
            fields=[
                ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                ('media_type', models.CharField(max_length=100)),
                ('size', models.PositiveIntegerField(help_text='Bytes.')),
                ('data', models.BinaryField()),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='images', to='agents.thread')),
            ],
        ),
    ]
