"""What others' protocols make of a run's events: pure functions over rows, never stored.

A projection of the Vercel AI SDK's UI message stream is one file per version of the SDK, over what
they share in `ui_stream`.
"""
