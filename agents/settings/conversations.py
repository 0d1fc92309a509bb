"""Sizes of messages, results and conversations."""

from typing import Annotated

from agents.kernel.settings import About, Bytes, FeatureSettings

Share = Annotated[float, About(expected="a number between 0 and 1", at_least=0)]
Tokens = Annotated[int, About(unit="tokens", at_least=1)]


class MessageSettings(FeatureSettings):
    """Messages and results"""

    IN_PROGRAMS = True

    MESSAGE_BYTES: Bytes = 1_000_000
    """The longest message that a person may send."""
    RESULT_BYTES: Bytes = 20_000_000
    """The longest tool result that is kept, in a file. A longer one is cut, with a note."""


class ContextSettings(FeatureSettings):
    """Long conversations

    See [context](../guides/context.md). `VEL_COMPACT_AT` is a part of the room for a prompt in the
    model's context window. `VEL_CLIP_TO` and `VEL_KEEP_RECENT` are parts of what the system prompt
    and the tools leave of this room.
    """

    IN_PROGRAMS = True

    EVICT_BYTES: Bytes = 60_000
    """A longer tool result goes to a file, and the model gets its beginning and end. Less in small
    context windows."""
    CONTEXT_WINDOW: Tokens = 200_000
    """The context window of models for which neither the data file nor their server has one."""
    COMPACT_AT: Share = 0.8
    """The part of the room at which the conversation is compacted."""
    CLIP_TO: Share = 0.5
    """If the messages take at most this part after cutting, nothing is summarised."""
    KEEP_RECENT: Share = 0.2
    """The part for the last turns, which are not summarised."""
    SUMMARY_TOKENS: Tokens = 4_000
    """The longest summary. Less in small context windows."""
