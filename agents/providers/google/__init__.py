"""The Gemini API, by Google's SDK.

`provider` imports the SDK, which takes a second: it is imported by `registry` when it is needed.
"""
