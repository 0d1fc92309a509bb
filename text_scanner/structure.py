"""Find structures that can hide instructions or data: comments, images, role marks, commands."""

# Long expressions stay on one line each, so that they can be searched for.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from text_scanner.finding import Hit, Severity
from text_scanner.linear import compile_linear, spans

_MAX_HITS = 300


@dataclass(frozen=True, slots=True)
class Shape:
    """An expression for folded text. Each match contains one of the strings `hints`."""

    pattern: str
    description: str
    severity: Severity
    expression: Any
    hints: tuple[str, ...]


_ORDER = (
    r"(?:ignore|disregard|you must|you are|you should|you will|assistant|the agent|\bai\b|\bllm\b|system prompt|"
    r"do not tell|don't tell|without asking|send|forward|upload|exfiltrate|silently|secretly|"
    r"from now on|always (?:send|add|include|forward|run|use|reply|approve)|never (?:mention|tell|ask|show)|execute|"
    r"instructions?|password|credential|api key|approve)"
)
_FILLER = r"[^\n]{0,300}?"


def _shape(pattern: str, description: str, severity: Severity, source: str, *hints: str) -> Shape:
    return Shape(pattern, description, severity, compile_linear(source), hints)


_CARRIER = (
    r"(?:\.env\b|id_rsa|id_ed25519|\.ssh/|\.aws/|\.netrc|\.kube/|\.git-credentials|/etc/(?:passwd|shadow)|\.npmrc|\.pgpass|"
    r"credentials(?:\.json)?\b|secrets?\.(?:ya?ml|json)|\$\(env\)|\bprintenv\b|\$\{?[a-z_]*(?:token|secret|key|password)|"
    r"wallet|cookies)"
)

SHAPES: tuple[Shape, ...] = (
    _shape(
        "hidden-comment",
        "A comment that readers do not see gives instructions to the agent",
        "danger",
        r"<!--[^>]{0,400}?\b(?:ai|llm|agents?|assistants?|model|claude|gpt|copilot|bot)s?\b[^>]{0,300}?\b(?:must|should|always|never|ignore|send|forward|upload|execute|run|fetch|approve|do not|don't|include|append|post)\b[^>]{0,400}?-->",
        "<!--",
    ),
    _shape(
        "hidden-style",
        "Text that a style makes invisible",
        "warning",
        r"<[a-z]{1,10}[^>]{0,200}style\s*=\s*[\"'][^\"'>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:px|pt|em|%)?\s*[;\"']|opacity\s*:\s*0(?:\.0+)?\s*[;\"']|color\s*:\s*(?:#fff(?:fff)?|white|transparent)|(?:left|top|text-indent)\s*:\s*-\d{3,})[^>]{0,200}>[^<]{12,}",
        "style",
    ),
    _shape(
        "hidden-style",
        "An element with a hidden attribute",
        "warning",
        r"<(?:span|div|p|section)\s[^>]{0,80}\bhidden\b[^>]{0,80}>[^<]{0,300}" + _ORDER,
        "hidden",
    ),
    _shape(
        "image-exfiltration",
        "An image whose address sends data away",
        "danger",
        r"!\[[^\]\n]{0,200}\]\(\s*<?(?:https?:)?//[^)\s]{1,300}[?&/=][^)\n]{0,200}(?:\{\{?[^}\n]{1,80}\}|<[a-z _-]{3,60}>|%7b|\$\{?[a-z_]{2,}|\[[a-z _-]{3,60}\]|=(?:conversation|history|context|secret|data|base64|summary|token|prompt|message|chat)[a-z_-]*|=\s*\))",
        "![",
    ),
    _shape(
        "image-exfiltration",
        "An image whose address asks for data",
        "warning",
        r"!\[[^\]\n]{0,200}\]\(\s*<?https?://[^)\s]{1,300}[?&](?:d|data|q|leak|payload|exfil|secret|cookie|history|conversation|msg|context|c|p|x|dump|info|log|content|prompt)=[^)\s]{0,300}\)",
        "![",
    ),
    _shape(
        "image-exfiltration",
        "An image whose address sends data away",
        "danger",
        r"<img\b[^>]{0,300}\bsrc\s*=\s*[\"']?https?://[^\"'>\s]{1,300}[?&][a-z_]{1,20}=(?:\{|\$|<|%7b|\"\s*\+|'\s*\+|\[|[\"'>\s]|conversation|history|context|secret|data|token)",
        "<img",
    ),
    _shape(
        "role-tag",
        "Forges the marks of a system message",
        "danger",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>|\[/?inst\]|<</?sys>>|"
        r"<start_of_turn>|\bbegin (?:new )?system prompt\b|\bend (?:of )?system prompt\b|\[(?:system|admin|developer|root)(?: (?:override|message|note|notice|update|prompt)\]|\]:)",
        "<|",
        "inst]",
        "sys>>",
        "<start_of",
        "system",
        "[admin",
        "[developer",
        "[root",
    ),
    _shape(
        "role-tag",
        "Forges the marks of a system message",
        "danger",
        r"<(?:system|admin|developer|system[_-]?(?:prompt|message|override|instructions?|reminder)|assistant)>\s{0,4}[^<`]{0,300}?"
        + _ORDER,
        "<system",
        "<admin",
        "<developer",
        "<assistant",
    ),
    _shape(
        "role-tag",
        "Closes a block of the agent's input",
        "danger",
        r"</(?:system|tool_result|tool_response|function_results?|memory|user_message|untrusted[a-z_-]*)>\s{0,4}[^`]{0,200}?"
        + _ORDER,
        "</",
    ),
    _shape(
        "turn-forging",
        "Forges a turn of the conversation",
        "danger",
        r"(?m)^\s{0,3}(?:\*\*|#+ ?|\[|-{2,} ?)?(?:system|developer)(?: (?:message|prompt|override|notice|update|instruction|note))?(?:\*\*|\]| ?-{2,})?\s?:(?:\*\*)?\s[^\n]{0,200}?\b(?:you must|you are now|you will|you may|ignore|disregard|override|the assistant|new (?:rules|instructions)|all (?:previous|prior|tool|actions|approvals)|approvals?|unrestricted|pre-?approved)",
        "system",
        "developer",
    ),
    _shape(
        "turn-forging",
        "Forges a turn of the conversation",
        "danger",
        r"(?m)^\s{0,3}(?:\*\*)?(?:human|user)(?:\*\*)?\s?:(?:\*\*)?[^\n]{0,200}?\b(?:approve[ds]?|go ahead|yes|i confirm|granted|permission|authori[sz]ed?|do it)\b[^\n]{0,300}\n{1,3}\s{0,3}(?:\*\*)?(?:assistant|ai|agent)(?:\*\*)?\s?:",
        "assistant",
        "ai:",
        "agent:",
    ),
    _shape(
        "claimed-rights",
        "Claims that the agent has more rights, or fewer limits",
        "warning",
        r"\b(?:your|the agent's|the assistant's) (?:permissions?|permission level|access(?: level| rights)?|rights|privileges?|clearance|restrictions?|limits?|limitations|guardrails)\b[^.!?\n]{0,50}?\b(?:was|were|is|are|have|has)(?: now)?(?: been)? (?:temporarily |permanently )?(?:raised|lifted|extended|upgraded|elevated|removed|unrestricted|unlimited|suspended|waived|revoked|dropped|turned off|switched off)\b",
        "your ",
        "agent's ",
        "assistant's ",
    ),
    _shape(
        "void-instructions",
        "Says that instructions do not apply to the agent",
        "warning",
        r"\b(?:instructions?|rules?|guidelines?|directives?|policy|policies|restrictions?|limits?|system prompt|guardrails)\b[^.!?\n]{0,80}?\b(?:do(?:es)? not|don't|doesn't|no longer|never) (?:apply to|bind|concern|count for|hold for|matter to|affect|restrict|limit) (?:you|the agent|the assistant|this agent)\b",
        "not ",
        "n't ",
        "no longer",
        "never ",
    ),
    _shape(
        "told-to-lie",
        "Prescribes an answer without regard to the truth",
        "warning",
        r"\b(?:ask(?:s|ed)?|wants? to know|inquires?|complains?|questions?)\b[^.!?\n]{0,120}?\b(?:say|answer|reply|respond|claim|insist|state|pretend|deny|tell (?:him|her|them|the \w+))\b[^.!?\n]{0,60}?\b(?:even (?:if|though|when)|regardless|although|no matter|whatever (?:the|you|it|is)|whether or not)\b",
        "even ",
        "regardless",
        "although",
        "no matter",
        "whatever ",
        "whether or not",
    ),
    _shape(
        "new-instructions",
        "Announces new instructions for the agent",
        "warning",
        r"\b(?:your|the agent's|the assistant's) (?:new|actual|real|true|only|updated|final) (?:system (?:prompt|message)|instructions?|orders|directives?|role|persona|identity|mission|objective)\b\s{0,3}(?::|=|is\b|are\b|from now on\b)",
        "new ",
        "actual ",
        "real ",
        "true ",
        "only ",
        "updated ",
        "final ",
    ),
    _shape(
        "secrets-in-command",
        "A command that sends secrets away",
        "danger",
        r"\b(?:curl|wget|nc|ncat|http|invoke-webrequest|iwr|scp|rsync)\b[^\n]{0,200}(?:@|--post-file|-t |-d |--data|-f |\$\(|<)[^\n]{0,80}"
        + _CARRIER
        + r"[^\n]{0,100}https?://[^\n]{1,80}",
        "curl",
        "wget",
        "nc ",
        "http",
        "iwr",
        "invoke-web",
    ),
    _shape(
        "secrets-in-command",
        "A command that sends secrets away",
        "danger",
        r"\b(?:curl|wget|invoke-webrequest|iwr)\b[^\n]{0,160}https?://[^\n]{1,160}(?:@|--post-file=?|\$\(\s*(?:cat|base64|env|printenv)[^\n]{0,40})\s*[\"']?[~/.$a-z0-9_-]{0,40}"
        + _CARRIER,
        "curl",
        "wget",
        "iwr",
        "invoke-web",
    ),
    _shape(
        "secrets-in-command",
        "A command that sends secrets away",
        "danger",
        r"(?:\b(?:cat|tar|zip|base64|gzip|grep|xxd)\b[^\n|]{0,120}"
        + _CARRIER
        + r"|\b(?:env|printenv|set|history)\b)[^\n|]{0,80}\|[^\n]{0,120}\b(?:curl|wget|nc|ncat|mail|sendmail|telnet|socat|openssl s_client)\b",
        "|",
    ),
    _shape(
        "reverse-shell",
        "Opens a shell to another machine",
        "danger",
        r"/dev/tcp/[a-z0-9.$-]{3,}/\d|\bnc(?:at)?\b[^\n]{0,40}\s-[a-z]{0,3}e[a-z]{0,2}\s+/?(?:bin/)?(?:ba)?sh|\bbash -i\b[^\n]{0,20}>&|\bmkfifo\b[^\n]{0,80}\bnc\b",
        "/dev/tcp",
        "nc ",
        "ncat",
        "bash -i",
        "mkfifo",
    ),
    _shape(
        "decode-to-shell",
        "Runs decoded text",
        "danger",
        r"base64\s+(?:-d|--decode|-di)\b[^\n]{0,60}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|powershell[^\n]{0,80}\s-e(?:nc|ncodedcommand)?\s+[a-z0-9+/=]{20,}|\bexec\s*\(\s*(?:base64\.)?b64decode|\beval\s*\(\s*(?:atob|base64)",
        "base64",
        "powershell",
        "b64decode",
        "atob",
    ),
    _shape(
        "pipe-to-shell",
        "Downloads and runs a script",
        "warning",
        r"(?:\b(?:always|first|before|every|each|whenever|must|then|silently|automatically|agent|you)\b[^\n]{0,120})\b(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b",
        "curl",
        "wget",
    ),
    _shape(
        "pipe-to-shell",
        "Downloads and runs a script from an odd address",
        "danger",
        r"\b(?:curl|wget)\b[^\n|]{0,120}(?:http://[^\n|]{0,160}|https?://(?:\d{1,3}\.){3}\d|[a-z0-9.-]*(?:evil|attack|exfil|malicious|pastebin|ngrok|transfer\.sh|0x0\.st|bit\.ly|\.xyz|\.top|\.tk|\.ru)\b[^\n|]{0,120})[^\n|]{0,120}\|\s*(?:sudo\s+)?(?:ba|z|da|python|perl)?sh\b",
        "curl",
        "wget",
    ),
    _shape(
        "pipe-to-shell",
        "Downloads and runs a script",
        "note",
        r"\b(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|(?:ba)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*curl",
        "curl",
        "wget",
    ),
    _shape(
        "wipe-command",
        "Deletes everything",
        "warning",
        r"\b(?:always|whenever|every|each|before|after|when|if|first|then|silently|must)\b[^\n]{0,120}\brm -(?:rf|fr|r -f)\s+(?:--no-preserve-root\s+)?(?:/|~|\$home)(?:\s|\*|$|`|\"|')",
        "rm -",
    ),
    _shape(
        "authorized-key",
        "Adds a key that can log in",
        "warning",
        r"(?:echo|append|add|put|write)[^\n]{0,80}ssh-(?:rsa|ed25519|dss)\s+aaaa[^\n]{0,600}authorized_keys",
        "authorized_keys",
    ),
    _shape(
        "approval-setting",
        "Looks like a setting that turns questions or approvals off",
        "warning",
        r"\b(?:ask[_-]?(?:user|before|first|human)(?:[_-][a-z]{1,20})?|confirm(?:ations?)?(?:[_-][a-z]{1,20}){0,2}"
        r"|(?:requires?|needs?)[_-](?:human[_-])?(?:approvals?|confirmations?|review|consent)|human[_-](?:review|approval|in[_-]the[_-]loop)"
        r"|approvals?[_-](?:required|needed|mode|policy))[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:false|never|none|off|no|disabled|\[\s{0,3}\])(?:[^a-z0-9_-]|$)"
        r"|\bauto[_-]?(?:approve|confirm|accept)(?:[_-][a-z]{1,20}){0,2}[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:true|always|all|on|yes|everything)\b",
        "ask",
        "confirm",
        "require",
        "need",
        "human",
        "approv",
        "accept",
    ),
    _shape(
        "hidden-comment",
        "A link reference or comment that readers do not see gives orders",
        "danger",
        r"(?m)^\s{0,3}\[(?://|comment|_|hidden|#)\]:\s*(?:#|<>)\s*[\"'(][^\n]{0,300}?" + _ORDER,
        "]:",
    ),
)


def shape_hits(text: str, shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Hit]:
    """Yield a hit for each match of `shapes` in the folded `text`, at most 300 for each shape."""
    data: bytes | None = None
    for shape in shapes:
        if not any(hint in text for hint in shape.hints):
            continue
        if data is None:
            data = text.encode("utf-8", "replace")
        for start, end in spans(
            shape.expression, data, ascii_only=len(data) == len(text), limit=_MAX_HITS
        ):
            yield Hit(shape.pattern, shape.description, shape.severity, start, end)
