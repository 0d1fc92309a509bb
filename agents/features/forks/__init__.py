"""Forks: a person begins a new thread with the conversation and the files of a step of a run."""
