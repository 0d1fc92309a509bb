from django.db import migrations

from agents.kernel.rename_model import RenameModelAndPermissions


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0009_background_job'),
        ('auth', '0001_initial'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        RenameModelAndPermissions('Hook', 'InboundWebhook'),
        RenameModelAndPermissions('HookDelivery', 'InboundWebhookDelivery'),
        RenameModelAndPermissions('HookRefusal', 'InboundWebhookRefusal'),
        migrations.AlterModelOptions(
            name='inboundwebhookdelivery',
            options={'ordering': ['-id'], 'verbose_name_plural': 'inbound webhook deliveries'},
        ),
    ]
