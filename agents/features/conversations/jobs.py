"""Each worker writes titles."""

from agents.features.conversations.title_writer import TitleWriter

PARTS = [TitleWriter]
