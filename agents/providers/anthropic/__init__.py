"""The Messages API of Anthropic, with its SDK.

`provider` imports the SDK, which takes a second, so `registry` imports it only when necessary.
"""
