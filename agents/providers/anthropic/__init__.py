"""The Messages API of Anthropic, by its SDK.

`provider` imports the SDK, which takes a second: it is imported by `registry` when it is needed.
"""
