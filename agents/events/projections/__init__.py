"""Convert a run's events to other protocols: pure functions over rows, never stored.

A projection of the Vercel AI SDK's UI message stream is one file per version of the SDK, over the
common parts in `ui_stream`.
"""
