"""A Python program that starts a run, in a forked process: see `tests.velproject.forked`."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module


def main() -> None:
    vel, no_space = import_module("vel"), import_module("agents.services.errors").NoSpace
    model = vel.scripted_model([{"text": "Hello"}])
    agent = vel.create_deep_agent(model=model, sandbox=False, name="Program")
    try:
        print(asyncio.run(agent.run("Hello")))
    except no_space as error:
        sys.exit(error.message)
