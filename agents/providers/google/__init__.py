"""The Gemini API, with Google's SDK.

`provider` imports the SDK, which takes a second, so `registry` imports it only when necessary.
"""
