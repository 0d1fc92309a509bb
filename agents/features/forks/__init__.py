"""Forks: new threads with the conversation and the files of a step of a run."""
