"""Keep long conversations within the model's context window.

It plugs in two middleware. `eviction` writes long results of tools to files. `compaction` cuts old
texts or replaces old turns with a summary, before a model call that would be too long and after one
that was.
"""
