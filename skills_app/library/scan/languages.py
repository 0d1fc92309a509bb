"""Classify files as code, with its language, or prose."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from text_scanner.linear import compile_linear

Role = Literal["code", "prose", "data"]

_BY_SUFFIX = {
    ".py": "Python", ".pyw": "Python", ".pth": "Python", ".ipynb": "notebook",
    ".sh": "shell", ".bash": "shell", ".zsh": "shell", ".fish": "shell", ".command": "shell",
    ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript",
    ".ts": "TypeScript", ".tsx": "TypeScript", ".mts": "TypeScript",
    ".rb": "Ruby", ".pl": "Perl", ".pm": "Perl", ".php": "PHP", ".lua": "Lua", ".r": "R",
    ".ps1": "PowerShell", ".psm1": "PowerShell", ".bat": "batch", ".cmd": "batch",
    ".vbs": "VBScript",
    ".wsf": "Windows script", ".hta": "HTML application", ".scpt": "AppleScript",
    ".applescript": "AppleScript", ".go": "Go", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin",
    ".swift": "Swift", ".c": "C", ".cc": "C++", ".cpp": "C++", ".cs": "C#", ".m": "Objective-C",
    ".awk": "awk", ".jl": "Julia", ".scala": "Scala", ".ex": "Elixir", ".exs": "Elixir",
    ".plist": "property list", ".service": "systemd unit", ".desktop": "desktop entry",
    ".tf": "Terraform", ".gradle": "Gradle", ".mk": "make",
}  # fmt: skip
_BY_NAME = {
    "makefile": "make", "dockerfile": "Docker", "rakefile": "Ruby", "gemfile": "Ruby",
    "justfile": "just", "package.json": "package hooks", "tasks.json": "editor tasks",
    "settings.json": "settings", "hooks.json": "hooks", ".envrc": "shell", ".bashrc": "shell",
    ".mcp.json": "settings", "mcp.json": "settings", "pre-commit": "shell", "post-commit": "shell",
}  # fmt: skip
_PROSE = {".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc", ".org", ".html", ".htm", ".prompt"}
_DATA = {
    *(".json", ".jsonl", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".xml", ".xsd", ".css"),
    *(".scss", ".svg", ".lock", ".ini", ".sql", ".sig", ".pem", ".crt", ".asc", ".timestamp"),
}
_SHEBANG = compile_linear(
    rb"\A#![ \t]*[^\n]*?([a-z]+)[0-9.]*[ \t\r]*(?:-[^\n]*)?(?:\n|\z)", any_case=True
)
_SCRIPTS = frozenset(
    [
        "Python",
        "shell",
        "JavaScript",
        "TypeScript",
        "Ruby",
        "Perl",
        "PHP",
        "Lua",
        "R",
        "PowerShell",
        "batch",
        "VBScript",
        "notebook",
        "AppleScript",
        "Go",
        "Rust",
        "Java",
        "Swift",
        "C",
        "C++",
        "C#",
        "awk",
        "Julia",
    ]
)


def language_of(path: str, data: bytes) -> str:
    """Return the programming language of a text file, "" if it has none."""
    found = _SHEBANG.search(data[:200])
    pure = PurePosixPath(path)
    known = _BY_SUFFIX.get(pure.suffix.lower()) or _BY_NAME.get(pure.name.lower(), "")
    if found and known not in _SCRIPTS:
        return {"bash": "shell", "sh": "shell", "zsh": "shell", "node": "JavaScript"}.get(
            found[1].decode().lower(), found[1].decode()
        )
    return known


def role_of(path: str, language: str) -> Role:
    """Return the role of a file. A file of unknown type counts as code, because it may be run."""
    suffix = PurePosixPath(path).suffix.lower()
    if language:
        return "code"
    if suffix in _PROSE:
        return "prose"
    return "data" if suffix in _DATA else "code"


def is_script(language: str) -> bool:
    return language in _SCRIPTS
