"""Masking of text that looks like a key or a password."""

from __future__ import annotations

import re

_KEYS = re.compile(
    r"""
      \bsk-(?:ant-|proj-|svcacct-|live-|test-)?[A-Za-z0-9_-]{20,}      # Anthropic, OpenAI
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}                           # Stripe
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                                    # AWS access key id
    | \bgh[pousr]_[A-Za-z0-9]{36,}\b | \bgithub_pat_[A-Za-z0-9_]{40,}  # GitHub
    | \bglpat-[A-Za-z0-9_-]{20,}                                       # GitLab
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}                                 # Slack
    | \bAIza[A-Za-z0-9_-]{35}                                          # Google
    | \bhf_[A-Za-z0-9]{30,}\b | \bnpm_[A-Za-z0-9]{36}\b                # Hugging Face, npm
    | \bpypi-[A-Za-z0-9_-]{50,}                                        # PyPI
    | \beyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,}  # JSON web token
    | -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
# The lengths are limited, so that matching takes linear time for any text.
_IN_URL = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,100}):([^\s/@]{3,200})@")

MASK = "[secret withheld]"


def mask_secrets(text: str) -> str:
    """Mask what looks like an API key, a private key or a password in a URL."""
    return _IN_URL.sub(rf"\1:{MASK}@", _KEYS.sub(MASK, text))
