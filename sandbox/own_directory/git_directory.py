"""Search for the files of a git directory that make git run a program.

Objects, refs, the index and the rest of a git directory stay writable, so that commits work.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from sandbox.directories.beneath import DIRECTORY
from sandbox.own_directory.inventory import Inventory, Item, is_below
from sandbox.own_directory.names import GIT, fold
from sandbox.own_directory.rules import FileRules
from sandbox.own_directory.stamps import (
    Allowance,
    ScanLimitReached,
    entry_stamp,
    read_text,
    text_stamp,
)

READ_ONLY = ("hooks", "config", "config.worktree", "commondir")
"""Names in a git directory that commands cannot change."""
NEVER_NEW = ("hooks", "config.worktree", "commondir")
"""Names that no command needs to create in an existing git directory."""

_TODO = "git-rebase-todo"
_MAX_DEPTH = 12
"""The maximum depth of nested directories below `modules` and `refs`."""
_WHY_LENGTH = 300
_PACKED_REFS = 64 * 1024 * 1024
_COMMIT = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


def looks_like_git(names: AbstractSet[str]) -> bool:
    """Return whether git treats a directory with these folded names as a repository."""
    return "head" in names and ({"objects", "refs"} <= names or "commondir" in names)


class GitScan:
    """Scan of git directories, which adds items and protected paths to `found`."""

    def __init__(
        self, root: Path, rules: FileRules, allowance: Allowance, found: Inventory
    ) -> None:
        self._root = root
        self._rules = rules
        self._allowance = allowance
        self._found = found

    def scan(self, descriptor: int, path: str, *, is_embedded: bool = False) -> None:
        """Scan an open git directory and the git directories in it.

        Raises OSError and `ScanLimitReached`.
        """
        entries = {entry.name: entry for entry in self._allowance.names(descriptor)}
        found = self._found
        if not self._rules.opens(path):
            found.repositories.add(path)
        why = "a directory that git treats as a repository" if is_embedded else "a git repository"
        found.items[path or "."] = Item("repository", why, "")
        for name in READ_ONLY:
            entry = next((one for one in entries.values() if fold(one.name) == name), None)
            if entry is not None:
                self._part(descriptor, entry, _join(path, entry.name), name)
        self._rebase(descriptor, path)
        if path.rpartition("/")[2] == GIT:
            found.history[path] = [_index_stamp(descriptor), *sorted(self._tips(descriptor))]
        for name in ("modules", "worktrees"):
            if name in entries and entries[name].is_dir(follow_symlinks=False):
                self._nested(descriptor, name, _join(path, name), 1)

    def protect_target(self, target: Path) -> None:
        """Protect the target of a link or of a git setting, if it is in the user's directory."""
        real = Path(os.path.realpath(target))
        if not real.is_relative_to(self._root) or real == self._root or not real.exists():
            return
        path = str(real.relative_to(self._root))
        if self._rules.opens(path) or is_below(path, self._found.read_only):
            return
        self._found.read_only.add(path)
        if path not in self._found.items:
            parent = os.open(real.parent, DIRECTORY)
            try:
                stamp = entry_stamp(real.name, parent, self._allowance)
            finally:
                os.close(parent)
            self._found.items[path] = Item("protected", "a program that git runs", stamp)

    def _part(self, git: int, entry: os.DirEntry[str], path: str, name: str) -> None:
        is_link = entry.is_symlink()
        if name == "hooks" and entry.is_dir(follow_symlinks=False):
            self._hooks(git, entry.name, path)
        elif name.startswith("config") and not is_link:
            self._config(git, entry.name, path)
        elif name != "commondir" or read_text(entry.name, git) not in ("../..\n", "../.."):
            stamp = entry_stamp(entry.name, git, self._allowance)
            self._found.items[path] = Item("git", "leads git to other hooks and settings", stamp)
        if self._rules.opens(path):
            return
        if is_link:
            self.protect_target(self._root / path)
        else:
            self._found.read_only.add(path)

    def _hooks(self, git: int, name: str, path: str) -> None:
        hooks = os.open(name, DIRECTORY, dir_fd=git)
        try:
            for hook in self._allowance.names(hooks):
                if not hook.name.endswith(".sample"):
                    stamp = entry_stamp(hook.name, hooks, self._allowance)
                    self._found.items[f"{path}/{hook.name}"] = Item("git", "a git hook", stamp)
        finally:
            os.close(hooks)

    def _config(self, git: int, name: str, path: str) -> None:
        text = read_text(name, git)
        if text is None:
            stamp = entry_stamp(name, git, self._allowance)
            self._found.items[path] = Item("git", "settings of git that cannot be read", stamp)
            return
        settings = executable_settings(text)
        if not settings:
            return
        keys = ", ".join(dict.fromkeys(setting.key for setting in settings))
        stamp = text_stamp(repr(settings))
        why = f"settings of git that run programs: {keys}"[:_WHY_LENGTH]
        self._found.items[path] = Item("git", why, stamp)
        if self._rules.opens(path):
            return
        work_tree = (self._root / path).parent.parent
        for hooks in values_of(settings, "core.hookspath"):
            self.protect_target(work_tree / hooks)
        for included in values_of(settings, "include*.path"):
            self.protect_target((self._root / path).parent / included)
        for setting in settings:
            for word in words_of(setting):
                if "\0" not in word and os.path.isfile(work_tree / word):
                    self.protect_target(work_tree / word)

    def _rebase(self, git: int, path: str) -> None:
        try:
            rebase = os.open("rebase-merge", DIRECTORY, dir_fd=git)
        except OSError:
            return
        try:
            todo = read_text(_TODO, rebase)
        finally:
            os.close(rebase)
        commands = [line.split(None, 1)[0] for line in (todo or "").splitlines() if line.strip()]
        if {"exec", "x"} & set(commands):
            at = f"{_join(path, 'rebase-merge')}/{_TODO}"
            why = "commands that `git rebase --continue` runs"
            self._found.items[at] = Item("git", why, text_stamp(todo or ""))

    def _tips(self, git: int) -> set[str]:
        texts = [read_text("HEAD", git), read_text("packed-refs", git, _PACKED_REFS)]
        try:
            refs = os.open("refs", DIRECTORY, dir_fd=git)
        except OSError:
            refs = None
        if refs is not None:
            try:
                self._read_refs(refs, texts, 1)
            finally:
                os.close(refs)
        return {found for text in texts if text for found in _COMMIT.findall(text)}

    def _read_refs(self, directory: int, texts: list[str | None], depth: int) -> None:
        for entry in self._allowance.names(directory):
            if entry.is_file(follow_symlinks=False):
                texts.append(read_text(entry.name, directory))
            elif entry.is_dir(follow_symlinks=False) and depth < _MAX_DEPTH:
                below = os.open(entry.name, DIRECTORY, dir_fd=directory)
                try:
                    self._read_refs(below, texts, depth + 1)
                finally:
                    os.close(below)

    def _nested(self, parent: int, name: str, path: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ScanLimitReached(f"{path} is nested too deeply")
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
        try:
            entries = self._allowance.names(descriptor)
            if looks_like_git({fold(entry.name) for entry in entries}):
                self.scan(descriptor, path)
                return
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self._nested(descriptor, entry.name, f"{path}/{entry.name}", depth + 1)
        finally:
            os.close(descriptor)


def _index_stamp(git: int) -> str:
    try:
        status = os.stat("index", dir_fd=git, follow_symlinks=False)
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


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
    """A setting of git. `key` is `section.subsection.key` in lower case."""

    key: str
    value: str


def executable_settings(text: str) -> list[Setting]:
    """Return the settings of a git config file that run a program or include other files.

    Unusual syntax is accepted: the result may contain a setting that git does not see.
    """
    return [setting for setting in _settings(text) if _runs(setting)]


def values_of(settings: list[Setting], pattern: str) -> list[str]:
    """Return the values of all settings whose key matches the glob `pattern`, with case."""
    return [setting.value for setting in settings if fnmatchcase(setting.key, pattern)]


def words_of(setting: Setting) -> list[str]:
    """Return the words of a setting's command; each of them may be a path."""
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
