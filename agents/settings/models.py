"""Models: which one answers, and how often a call is made again."""

from pathlib import Path
from typing import Annotated

from agents.kernel.settings import About, FeatureSettings, Positive, Seconds


class ModelSettings(FeatureSettings):
    """Models

    See [providers](../guides/providers.md).
    """

    IN_PROGRAMS = True

    PROVIDER: Annotated[
        str, About(default="`anthropic` with its key or base URL, else the offline script")
    ] = ""
    """The default provider of agents. Keys of other providers do not choose it."""
    MODEL: Annotated[str, About(default="by provider")] = ""
    """The default model of agents of the default provider."""
    ANTHROPIC_API_KEY: Annotated[str, About(is_secret=True, variables=("ANTHROPIC_API_KEY",))] = ""
    """Without a key and a base URL, the offline script answers. Python programs need a key or a
    script."""
    ANTHROPIC_BASE_URL: Annotated[
        str, About(variables=("ANTHROPIC_BASE_URL",), default="Anthropic's API")
    ] = ""
    """Any server that speaks the Messages API."""
    OPENAI_API_KEY: Annotated[str, About(is_secret=True, variables=("OPENAI_API_KEY",))] = ""
    """The key of the provider `openai`."""
    OPENAI_BASE_URL: Annotated[
        str, About(variables=("OPENAI_BASE_URL",), default="OpenAI's API")
    ] = ""
    """Any server that speaks Responses or Chat Completions."""
    GOOGLE_API_KEY: Annotated[
        str, About(is_secret=True, variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"))
    ] = ""
    """The key of the provider `google`."""
    GOOGLE_BASE_URL: Annotated[
        str, About(variables=("GOOGLE_GEMINI_BASE_URL",), default="Google's API")
    ] = ""
    """Any server that speaks the Gemini API."""
    MODEL_IDLE_SECONDS: Seconds = 120.0
    """Silence in the stream of a model after which the call is made again."""
    MODEL_ATTEMPTS: Positive = 6
    """How often one model call is tried before the run fails."""
    RETRY_BASE_SECONDS: Seconds = 1.0
    """The pause before a model call is made again. It doubles each time, up to a minute."""
    IMAGE_MODELS: tuple[str, ...] = ()
    """Models of your own server that accept [pictures](../guides/uploads.md#images), if neither
    Vel's data file nor the server declares it."""


class ScriptSettings(FeatureSettings):
    """Scripts of the offline model"""

    SCRIPTS_DIR: Path | None = None
    """The directory where workers find the scripts that an agent names as `file:NAME`. Empty:
    workers play no files. `vel TASK` and Python programs play any file."""
