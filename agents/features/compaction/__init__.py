"""Keep long conversations within the model's context window.

It plugs in the middleware `compaction`, which cuts old texts or replaces old turns with a summary,
before a model call that would be too long and after one that was.
"""
