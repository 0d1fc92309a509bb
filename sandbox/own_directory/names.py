"""Names of files that programs outside the sandbox run or obey automatically.

There are two classes. Commands and file tools cannot change a *protected* file in a user's own
directory. They can change a *listed* file, and the report at the end of the run lists the change.
"""

from __future__ import annotations

import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache

GIT = ".git"
BLOCKED = ".vel-blocked"
"""Part of the names of renamed files."""

_EDITORS = "settings of an editor, which can run programs"
_AGENTS = "settings of a coding agent, which can run programs"
_INSTRUCTIONS = "instructions that coding agents follow"
_SHELL = "a start-up file of a shell or a program"
_CI = "a CI definition"
_HOOKS = "commands that git hooks run"
_PACKAGES = "settings of a package manager, which can run programs"
_BUILD = "a build or test definition"


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: why for why, names in rows for name in names.split()}


PROTECTED = _table(
    (_EDITORS, ".vscode .idea .fleet .zed .run .devcontainer .devcontainer.json .exrc .vimrc"),
    (_EDITORS, ".nvimrc .nvim.lua .dir-locals.el .dir-locals-2.el .kakrc"),
    (_AGENTS, ".mcp.json .claude .claude.json .cursor .codex .gemini .windsurf .roo .cline"),
    (_AGENTS, ".continue .aider.conf.yml .amazonq .kiro .opencode opencode.json .amp"),
    (_SHELL, ".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile"),
    (_SHELL, ".zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .tmux.conf"),
    (_SHELL, ".screenrc .gdbinit .lldbinit .pdbrc .pdbrc.py .pythonrc .pythonrc.py .irbrc"),
    (_SHELL, ".pryrc .psqlrc .sqliterc .ripgreprc .gitconfig .ssh .netrc .wgetrc .curlrc"),
    (_SHELL, ".xinitrc .xprofile .xsession"),
    ("loaded by direnv or mise on entering the directory", ".envrc .mise.toml mise.toml .mise"),
    ("loaded by direnv or mise on entering the directory", ".mise.local.toml mise.local.toml"),
    (_HOOKS, ".husky .githooks .git-hooks .lefthook .pre-commit-config.yaml"),
    (_HOOKS, "lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml lefthook-local.yml"),
    (_HOOKS, ".overcommit.yml .lintstagedrc .lintstagedrc.json .lintstagedrc.js .huskyrc"),
    (_HOOKS, ".huskyrc.json .huskyrc.js .simple-git-hooks.json .simple-git-hooks.js"),
    (_PACKAGES, ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .bazelrc"),
    (_PACKAGES, "bunfig.toml .cargo .pypirc pip.conf .condarc .bundle .mvn .sbtopts .jvmopts"),
    (_CI, ".github .gitlab .gitlab-ci.yml .gitlab-ci.yaml .circleci .buildkite .travis.yml"),
    (_CI, ".drone.yml .woodpecker.yml .woodpecker.yaml .woodpecker jenkinsfile .azure-pipelines"),
    (_CI, "azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml appveyor.yml"),
    (_CI, ".appveyor.yml cloudbuild.yaml cloudbuild.yml buildspec.yml .cirrus.yml .cirrus.star"),
    (_CI, ".semaphore .gitea .forgejo .teamcity .builds .build.yml .readthedocs.yml"),
    (_CI, ".readthedocs.yaml netlify.toml vercel.json"),
)
_PROTECTED_PATTERNS = {"*.code-workspace": _EDITORS, "*.sublime-project": _EDITORS}

LISTED = _table(
    (_INSTRUCTIONS, "claude.md claude.local.md agents.md gemini.md .cursorrules .windsurfrules"),
    (_INSTRUCTIONS, ".clinerules .roomodes conventions.md"),
    (_BUILD, "makefile gnumakefile justfile .justfile taskfile.yml taskfile.yaml rakefile"),
    (_BUILD, "package.json deno.json deno.jsonc setup.py setup.cfg pyproject.toml conftest.py"),
    (_BUILD, "pytest.ini tox.ini noxfile.py tasks.py fabfile.py dodo.py sconstruct wscript"),
    (_BUILD, "cmakelists.txt configure configure.ac meson.build build.rs cargo.toml"),
    (_BUILD, "rust-toolchain rust-toolchain.toml gemfile composer.json mix.exs build.sbt pom.xml"),
    (_BUILD, "gradlew mvnw gradle.properties gradle-wrapper.properties gradle-wrapper.jar"),
    (_BUILD, "directory.build.props directory.build.targets workspace module.bazel"),
    (_BUILD, "dockerfile containerfile vagrantfile procfile tiltfile skaffold.yaml"),
    (_BUILD, "flake.nix shell.nix default.nix devenv.nix .tool-versions gulpfile.js gruntfile.js"),
    (_BUILD, ".pnp.cjs .pnp.loader.mjs .pre-commit-hooks.yaml"),
    ("imported by every Python that starts here", "sitecustomize.py usercustomize.py"),
    ("settings of git for this repository", ".gitmodules .gitattributes"),
)
_LISTED_PATTERNS = {
    **dict.fromkeys(
        ("*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.mts"),
        "code that editors and build tools load",
    ),
    **dict.fromkeys(
        (".eslintrc*", ".prettierrc*", ".babelrc*", ".stylelintrc*", ".mocharc*", ".swcrc"),
        "settings of a tool, which can load code",
    ),
    **dict.fromkeys(
        ("*.gradle", "*.gradle.kts", "*.csproj", "*.vcxproj", "*.targets", "*.mk", "dockerfile.*"),
        _BUILD,
    ),
    **dict.fromkeys(("docker-compose*.y*ml", "compose*.y*ml"), _BUILD),
    "*.pth": "imported by every Python that starts here",
}

PACKAGES = {
    "node_modules": "installed packages, loaded by editors and build tools",
    "__pycache__": "compiled Python, which runs in place of the source",
    ".venv": "a Python environment, which editors start",
    "venv": "a Python environment, which editors start",
}
"""Directories that are compared as a whole, by names, sizes and times."""


@lru_cache(maxsize=50_000)
def fold(name: str) -> str:
    """Return `name` as a file system that ignores case or invisible characters compares it."""
    shown = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", shown).casefold()


def why_protected(name: str) -> str | None:
    """Return why a file or directory with this name is protected, or None if it is not."""
    return _find(fold(name), PROTECTED, _PROTECTED_PATTERNS)


def why_listed(name: str) -> str | None:
    """Return why a file with this name is listed, or None if it is not."""
    if BLOCKED in name:
        return "put aside: no program runs it with this name"
    return _find(fold(name), LISTED, _LISTED_PATTERNS)


def _find(name: str, names: dict[str, str], patterns: dict[str, str]) -> str | None:
    found = names.get(name)
    if found is not None:
        return found
    return next((why for pattern, why in patterns.items() if fnmatchcase(name, pattern)), None)
