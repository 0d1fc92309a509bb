from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0020_toolkits")]

    operations = [
        migrations.AlterModelOptions(
            name="agent",
            options={
                "ordering": ["name"],
                "permissions": [
                    ("configure_sandbox", "Can change an agent's sandbox and network"),
                    ("share_agent", "Can let others use an agent"),
                    ("configure_approval", "Can change what an agent asks, and who approves it"),
                ],
            },
        ),
    ]
