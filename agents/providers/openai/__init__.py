"""OpenAI's two protocols, Responses and Chat Completions, by its SDK.

`provider` imports the SDK, which takes a second: it is imported by `registry` when it is needed.
"""
