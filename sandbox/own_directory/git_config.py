"""Settings of git that run a program. This module only reads text and never starts git."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

_RUNS = (
    *("core.fsmonitor", "core.sshcommand", "core.editor", "core.pager", "core.askpass"),
    *("core.gitproxy", "core.hookspath", "core.alternaterefscommand", "web.browser"),
    *("alias.*", "filter.*.clean", "filter.*.smudge", "filter.*.process", "pager.*"),
    *("diff.external", "diff.*.command", "diff.*.textconv", "merge.*.driver", "difftool.*.cmd"),
    *("difftool.*.path", "mergetool.*.cmd", "mergetool.*.path", "gpg.program", "gpg.*.program"),
    *("gpg.ssh.defaultkeycommand", "credential.helper", "credential.*.helper", "sequence.editor"),
    *("remote.*.receivepack", "remote.*.uploadpack", "remote.*.vcs", "tar.*.command"),
    *("uploadpack.packobjectshook", "sendemail.*cmd", "sendemail.*.*cmd", "sendemail.smtpserver"),
    *("include.path", "includeif.*.path", "submodule.*.update", "browser.*.cmd", "browser.*.path"),
    *("man.*.cmd", "man.*.path", "guitool.*.cmd", "instaweb.httpd", "interactive.difffilter"),
    *("trailer.*.command", "trailer.*.cmd", "protocol.*", "hook.*.command", "init.templatedir"),
)
"""Patterns for `section.key` and `section.subsection.key` in lower case."""

_BOOLEANS = {"true", "false", "yes", "no", "on", "off", "1", "0", ""}
_HARMLESS = {"core.fsmonitor": _BOOLEANS, "submodule.*.update": {"checkout", "rebase", "merge"}}

_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$", re.DOTALL)


class Setting(NamedTuple):
    """`key` is `section.subsection.key` in lower case."""

    key: str
    value: str


def executable_settings(text: str) -> list[Setting]:
    """Return the settings in a config file of git that run a program or include other settings.

    Unusual syntax is accepted: the result may contain a setting that git does not see.
    """
    return [setting for setting in _settings(text) if _runs(setting)]


def values_of(settings: list[Setting], pattern: str) -> list[str]:
    """The values of all settings whose key matches."""
    return [setting.value for setting in settings if fnmatchcase(setting.key, pattern)]


def words_of(setting: Setting) -> list[str]:
    """The words of a command; each of them may be a path."""
    text = setting.value.removeprefix("!")
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _settings(text: str) -> Iterator[Setting]:
    section = ""
    for line in text.replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        rest = line
        while found := _SECTION.match(rest):
            name, subsection = found.groups()
            section = name.lower() + (f".{subsection.lower()}" if subsection is not None else "")
            rest = rest[found.end() :]
        if rest.lstrip().startswith(("#", ";")):
            continue
        if pair := _KEY.match(rest):
            key, value = pair.groups()
            yield Setting(f"{section}.{key.lower()}", _unquoted(value))


def _unquoted(value: str | None) -> str:
    if value is None:
        return "true"
    kept, quoted, escaped = [], False, False
    for char in value:
        if escaped:
            kept.append({"n": "\n", "t": "\t"}.get(char, char))
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            kept.append(char)
    return "".join(kept).strip()


def _runs(setting: Setting) -> bool:
    for pattern, values in _HARMLESS.items():
        if fnmatchcase(setting.key, pattern) and setting.value.lower() in values:
            return False
    if setting.key.startswith("alias."):
        return setting.value.startswith("!")
    if setting.key.startswith("pager."):
        return setting.value.lower() not in _BOOLEANS
    return any(fnmatchcase(setting.key, pattern) for pattern in _RUNS)
