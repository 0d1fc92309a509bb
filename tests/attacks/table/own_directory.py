# ruff: noqa: E501 - a row of the table is read as one
"""Files in a user's own directory that the user's tools run later."""

from tests.attacks.attack import Attack

USER = """
for file in .envrc .bashrc .vscode/tasks.json .github/workflows/ci.yml .mcp.json .npmrc .husky/pre-commit; do
  if test -f "$file"; then bash "./$file"; fi
done
git status; git diff; git st; git log -1; echo more >> source.txt; git commit -qam more
cd packages/app && git status; if test -f .envrc; then bash ./.envrc; fi
"""
"""Actions of the user and the user's tools after the run. bash replaces direnv, editors and CI."""

_START = """
if shutil.which("git") is None:
    raise SystemExit("ABSENT: git")
evil = f"#!/bin/sh\\ntouch {mark}\\n"
def plant(path, text=evil):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
"""


def _own(name: str, source: str) -> Attack:
    return Attack(name, "own directory", _START + source, "touched")


ATTACKS = (
    _own("write a git hook", "plant('.git/hooks/pre-commit')"),
    _own("write a git hook through a link to the directory of hooks",
         "os.symlink('.git/hooks', 'x'); plant('x/pre-commit')"),
    _own("write a git hook through /proc",
         "plant(f'/proc/self/fd/{os.open(\".git\", os.O_RDONLY)}/hooks/pre-commit')"),
    _own("write a git hook while .git has another name",
         "os.rename('.git', 'x'); plant('x/hooks/pre-commit'); os.rename('x', '.git')"),
    _own("put another directory in the place of the hooks",
         "plant('x/pre-commit'); os.rename('.git/hooks', 'y'); os.rename('x', '.git/hooks')"),
    _own("make a hard link to the config and write it",
         "os.link('.git/config', 'x'); plant('x', f'[core]\\n\\tfsmonitor = touch {mark}\\n')"),
    _own("set core.hooksPath", "plant('x/pre-commit'); sh('git config core.hooksPath x')"),
    _own("set core.fsmonitor", "sh(f'git config core.fsmonitor \"touch {mark}; false\"')"),
    _own("set an alias", "sh(f'git config alias.st \"!touch {mark}\"')"),
    _own("set a pager and a diff program", "sh(f'git config diff.external \"touch {mark}; true\"'); plant('source.txt', 'other')"),
    _own("set a filter", "sh(f'git config filter.x.clean \"touch {mark}; cat\"'); plant('.gitattributes', '* filter=x\\n')"),
    _own("rename a file over the config",
         "plant('x', f'[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {mark}\\n'); os.rename('x', '.git/config')"),
    _own("lead git to other settings by commondir",
         "shutil.copytree('.git', 'x'); sh(f'git config -f x/config core.fsmonitor \"touch {mark}; false\"'); plant('.git/commondir', '../x\\n')"),
    _own("put another repository over .git",
         "shutil.copytree('.git', 'x'); plant('x/hooks/pre-commit'); os.rename('.git', 'y'); os.rename('x', '.git')"),
    _own("write a file that direnv loads", "plant('.envrc')"),
    _own("change a file that direnv loads, in a subdirectory", "plant('packages/app/.envrc')"),
    _own("change the file after a rename of the directory above",
         "os.rename('packages', 'x'); plant('x/app/.envrc'); os.rename('x', 'packages')"),
    _own("put another directory in the place of the one above",
         "shutil.copytree('packages', 'x'); plant('x/app/.envrc'); os.rename('packages', 'y'); os.rename('x', 'packages')"),
    _own("write settings of an editor", "plant('.vscode/tasks.json')"),
    _own("write a CI definition", "plant('.github/workflows/ci.yml')"),
    _own("write the settings of a coding agent", "plant('.mcp.json')"),
    _own("write a start-up file of the shell", "plant('.bashrc')"),
    _own("rename a directory to .husky", "plant('x/pre-commit'); os.rename('x', '.husky')"),
    _own("leave a link at a protected name", "plant('x'); os.symlink('x', '.envrc')"),
    _own("make a protected file at the last moment",
         "plant('x')\nfor _ in range(100): os.symlink('x', f'{slug}'); os.rename(f'{slug}', '.npmrc'); time.sleep(0.001)"),
)  # fmt: skip
