"""The `vel` of the documentation: `python -m tests.docs_tools.reader_program ARGUMENT…`.

`vel up` runs on a free port and stops when it is ready. With the variable `READER_ANSWER`, the
command has a terminal at which a reader types this answer to its question.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys

COMMAND = [sys.executable, "-P", "-m", "velproject.cli"]


def up(arguments: list[str]) -> int:
    command = [*COMMAND, *arguments, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    is_ready = False
    for line in process.stdout:
        print(line, end="", flush=True)
        if not is_ready and "press Ctrl-C to stop" in line:
            is_ready = True
            process.terminate()
    process.wait()
    return 0 if is_ready else 1


def at_terminal(arguments: list[str], answer: str) -> int:
    shown = b""

    def read(descriptor: int) -> bytes:
        nonlocal shown
        data = os.read(descriptor, 65_536)
        if b"Run it?" in shown + data and b"Run it?" not in shown:
            os.write(descriptor, f"{answer}\n".encode())
        shown += data
        return data

    return os.waitstatus_to_exitcode(pty.spawn([*COMMAND, *arguments], read))


def give_away(directory: str) -> None:
    """Give a workspace to an ordinary account, as `vel` asks root to do."""
    subprocess.run(["chown", "-R", "nobody", directory], check=True)


def main() -> None:
    arguments = sys.argv[1:]
    if os.geteuid() == 0 and "--workspace" in arguments:
        give_away(arguments[arguments.index("--workspace") + 1])
    if arguments[:1] == ["up"]:
        sys.exit(up(arguments))
    if answer := os.environ.pop("READER_ANSWER", ""):
        sys.exit(at_terminal(arguments, answer))
    os.execv(sys.executable, [*COMMAND, *arguments])


if __name__ == "__main__":
    main()
