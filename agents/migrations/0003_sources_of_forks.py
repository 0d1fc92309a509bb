from django.db import migrations, models


def derive_sources(apps, schema_editor):
    """Store the sources of each fork whose origin still exists. The others stay unknown."""
    database = schema_editor.connection.alias
    threads = apps.get_model('agents', 'Thread').objects.using(database)
    runs = apps.get_model('agents', 'Run').objects.using(database)
    forks = threads.filter(forked_turn__isnull=False, forked_from__isnull=False)
    # A fork has a larger id than its origin, so the sources of a fork of a fork are known here.
    for fork in forks.select_related('forked_from__thread').order_by('pk'):
        origin = fork.forked_from.thread
        sources = set(runs.filter(thread=origin).values_list('source', flat=True).distinct())
        if origin.forked_turn is not None:
            earlier = threads.values_list('forked_sources', flat=True).get(pk=origin.pk)
            if earlier is None:
                continue
            sources.update(earlier)
        threads.filter(pk=fork.pk).update(forked_sources=sorted(sources))


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0002_definitions_of_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='thread',
            name='forked_sources',
            field=models.JSONField(blank=True, editable=False, help_text='The interfaces that started the runs of the conversations from which it was forked. Null: not a fork, or unknown.', null=True),
        ),
        migrations.RunPython(derive_sources, migrations.RunPython.noop, elidable=True),
    ]
