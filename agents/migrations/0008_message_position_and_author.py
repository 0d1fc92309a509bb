"""Messages have a position and an author, so that a turn can have several notes."""

from django.db import migrations, models


def fill(apps, schema_editor):
    message = apps.get_model("agents", "Message")
    # A turn had one message of each role: a user's message of a later turn is a note.
    message.objects.filter(role="user", turn__gt=0).update(position=1)
    message.objects.filter(role="assistant").update(author="model")
    requests = message.objects.filter(role="user", turn=0)
    requests.filter(run__parent__isnull=True).update(author="person")
    requests.filter(run__parent__isnull=False).update(author="agent")


class Migration(migrations.Migration):
    dependencies = [("agents", "0007_agent_options")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="position",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                help_text="Its place in the turn. 0: the message or the reply. Else a note after it.",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="author",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Who wrote it: person, agent, model, or what wrote a note. Empty: unknown.",
                max_length=100,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
        migrations.RemoveConstraint(model_name="message", name="one_message_per_turn"),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("run", "turn", "position"), name="one_message_per_position"
            ),
        ),
    ]
