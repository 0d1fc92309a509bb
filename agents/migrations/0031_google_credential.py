from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0030_mcp_tool'),
    ]

    operations = [
        migrations.AlterField(
            model_name='credential',
            name='provider',
            field=models.CharField(choices=[('slack', 'Slack'), ('google', 'Google')], max_length=20),
        ),
    ]
