"""Common programs work in a sandbox with the system-call filter."""

import shutil

import pytest

from sandbox.linux.bubblewrap import BubblewrapSandbox

pytestmark = pytest.mark.bubblewrap

WORKING = {
    "bash": "for i in 1 2; do echo $((i * i)); done | sort -r | tail -1; diff <(echo a) <(echo a)",
    "git": "git init -q r && cd r && git config user.email a@b && git config user.name n && "
    "echo x > f && git add f && git commit -qm m && git log --oneline | wc -l",
    "gcc": "printf '#include <pthread.h>\\n#include <stdio.h>\\nvoid *f(void *a) {return a;}\\n"
    'int main() {pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); puts("1");}\' > a.c '
    "&& gcc -pthread a.c -o a && ./a",
    "node": 'node -e \'require("fs").readFile("/etc/hosts", () => console.log(1))\'',
    "curl": "python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 & "
    "for n in $(seq 100); do curl -sf http://localhost:8123/ >/dev/null && echo 1 && break; "
    "sleep 0.1; done",
    "tail": "touch log; (for n in $(seq 300); do echo 1 >> log; sleep 0.1; done) & "
    "tail -n0 -f log | head -1",
    "tar": "mkdir d && touch d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && ls d | wc -l",
}


@pytest.mark.parametrize("program", WORKING)
def test_programs_work_under_it(box: BubblewrapSandbox, program: str) -> None:
    if shutil.which(program, path="/usr/bin:/bin") is None:
        pytest.skip(f"needs {program}")
    result = box.execute(WORKING[program])
    assert result.stdout.strip() == "1", result.stderr
    assert result.exit_code == 0


PYTHON_WORKS = {
    "threads": "from concurrent.futures import *\n"
    "print(sum(ThreadPoolExecutor(8).map(abs, range(5))))",
    "processes": "from concurrent.futures import *\n"
    "if __name__ == '__main__': print(sum(ProcessPoolExecutor(2).map(abs, range(5))))",
    "a manager": "from multiprocessing import Manager\n"
    "if __name__ == '__main__':\n"
    "    with Manager() as manager: print(sum(manager.list([4, 6])))",
    "shared memory": "from multiprocessing.shared_memory import SharedMemory\n"
    "m = SharedMemory(create=True, size=9); m.buf[0] = 10; print(m.buf[0]); m.close(); m.unlink()",
    "asyncio subprocess": "import asyncio\n"
    "async def main():\n"
    "    p = await asyncio.create_subprocess_exec('echo', '10', stdout=-1)\n"
    "    print((await p.communicate())[0].decode().strip())\n"
    "asyncio.run(main())",
    "loopback": "import socket, threading\n"
    "server = socket.create_server(('localhost', 0))\n"
    "threading.Thread(target=lambda: server.accept()[0].sendall(b'10')).start()\n"
    "print(socket.create_connection(server.getsockname()).recv(9).decode())",
    "sqlite in WAL mode": "import sqlite3\n"
    "a = sqlite3.connect('x.db'); b = sqlite3.connect('x.db')\n"
    "assert a.execute('pragma journal_mode=wal').fetchone() == ('wal',)\n"
    "a.execute('create table t (n)'); a.execute('insert into t values (10)'); a.commit()\n"
    "print(b.execute('select n from t').fetchone()[0])",
    "subprocess": "import subprocess\nsubprocess.run('echo 10', shell=True, check=True)",
    "temporary files": "import tempfile\n"
    "f = tempfile.TemporaryFile(); f.write(b'10'); f.seek(0); print(f.read().decode())",
    "posix_fallocate": "import os\n"
    "f = os.open('f', os.O_RDWR | os.O_CREAT); os.posix_fallocate(f, 0, 10)\n"
    "print(os.fstat(f).st_size)",
}


@pytest.mark.parametrize("what", PYTHON_WORKS)
def test_python_works_under_it(box: BubblewrapSandbox, what: str) -> None:
    result = box.execute_python(PYTHON_WORKS[what])
    assert result.stdout.strip() == "10", result.stderr
    assert result.exit_code == 0
