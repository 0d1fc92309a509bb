"""Everyday work of an agent that a sandbox must not break, in longer sequences.

The tests of single programs are in tests/sandbox/test_programs.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from sandbox import BaseSandbox
from sandbox.linux.bubblewrap import BubblewrapSandbox
from tests.sandbox.places import reachable_directory, workspace_in
from tests.support.hang import HANG

pytestmark = pytest.mark.bubblewrap


@pytest.fixture(scope="module")
def box() -> Iterator[BaseSandbox]:
    with reachable_directory() as place:
        yield BubblewrapSandbox(workspace_in(place).policy(timeout=HANG))


# Each creates its own directory and prints OK as its last line.
WORK = {
    "git": """
git init -q a && cd a && git config user.email a@b && git config user.name n
echo one > f && git add . && git commit -qm one && git checkout -qb side && echo two >> f
git commit -qam two && git checkout -q - && git merge -q --no-edit side && git stash list
cd .. && git clone -q a b && cd b && git log --oneline | wc -l | grep -qx 2 && git fsck --strict
git gc -q && git push -q origin HEAD:pushed && git -C ../a branch | grep -q pushed && echo OK
""",
    "make": """
printf 'all: a b\\n\\tcat a b > all\\na b:\\n\\techo $@ > $@\\n' > Makefile
make -j4 -s && tr -d '\\n' < all | grep -qx ab && make -q && echo OK
""",
    "gcc": """
printf 'int twice(int n) { return 2 * n; }\\n' > t.c
printf '#include <stdio.h>\\nint twice(int);int main(void){printf("%%d\\\\n", twice(21));}\\n' > m.c
gcc -O2 -fPIC -shared t.c -o libt.so && gcc m.c -L. -lt -Wl,-rpath,. -o m && ./m | grep -qx 42
strip m && ./m | grep -qx 42 && echo OK
""",
    "node": """
cat > a.js <<'END'
const { Worker, isMainThread, parentPort } = require('worker_threads');
const http = require('http'), { execSync } = require('child_process');
if (!isMainThread) { parentPort.postMessage(21); } else {
  new Worker(__filename).on('message', (n) => {
    const server = http.createServer((q, s) => s.end(String(n * 2))).listen(0, '127.0.0.1', () =>
      http.get(server.address(), (r) => r.on('data', (d) => {
        server.close(); console.log(execSync('echo O').toString().trim() + (d == 42 ? 'K' : '!'));
      })));
  });
}
END
node a.js
""",
    "sqlite3": """
sqlite3 x.db 'pragma journal_mode=wal; create table t(n); begin; insert into t values (1), (2);
commit;' && sqlite3 x.db 'select sum(n) from t' | grep -qx 3
sqlite3 x.db .dump | sqlite3 y.db && sqlite3 y.db 'pragma integrity_check' | grep -qx ok && echo OK
""",
    "zip": "mkdir d && echo x > d/f && ln -s f d/l && zip -qry a.zip d && rm -r d && "
    "unzip -q a.zip && test -L d/l && cat d/l | grep -qx x && echo OK",
    "tar": "mkdir -p d/e && echo x > d/e/f && ln d/e/f d/h && chmod 640 d/h && tar cJf a.txz d && "
    "rm -r d && tar xJpf a.txz && test d/h -ef d/e/f && stat -c %a d/h | grep -qx 640 && echo OK",
    "awk": "seq 1000 | awk '{s += $1} END {print s}' | sed -E 's/^500(.*)$/\\1/' | grep -qx 500 && "
    "seq 5 > n && sed -i 3d n && sort -rn n | paste -sd, | grep -qx 5,4,2,1 && echo OK",
    "python3": """
cat > a.py <<'END'
import asyncio, http.server, multiprocessing, os, sys, tempfile, threading, urllib.request
def square(n): return n * n
async def main():
    p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(6)", stdout=-1)
    q = await asyncio.create_subprocess_shell("cat", stdin=-1, stdout=-1)
    return int((await p.communicate())[0]) + int((await q.communicate(b"36"))[0])
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            assert sum(pool.map(square, range(5))) == 30
    queue = multiprocessing.Queue(); queue.put(1); assert queue.get() == 1
    assert asyncio.run(main()) == 42
    server = http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = urllib.request.urlopen(f"http://localhost:{server.server_port}/a.py").read()
    server.shutdown()
    assert b"asyncio" in page
    with tempfile.NamedTemporaryFile() as f: assert os.path.exists(f.name)
    print("OK")
END
python3 a.py 2>log | tail -1
""",
    "perl": 'perl -e \'fork // die; wait; print $$ > 0 ? "OK\\n" : ""\' | tail -1',
    "openssl": "openssl rand -hex 8 | grep -qE '^[0-9a-f]{16}$' && echo x | "
    "openssl enc -aes-256-cbc -pbkdf2 -k p | openssl enc -d -aes-256-cbc -pbkdf2 -k p | "
    "grep -qx x && echo OK",
}


@pytest.mark.parametrize("program", WORK)
def test_everyday_work(box: BaseSandbox, program: str) -> None:
    if shutil.which(program, path="/usr/bin:/bin") is None:
        pytest.skip(f"needs {program}")
    result = box.execute(f"mkdir {program} && cd {program}\n{WORK[program]}")
    assert result.stdout.strip().split("\n")[-1] == "OK", (result.stdout, result.stderr)


WHEEL = """
import zipfile
with zipfile.ZipFile("vel_example-1.0-py3-none-any.whl", "w") as wheel:
    info = "vel_example-1.0.dist-info/"
    wheel.writestr("vel_example.py", "answer = 42")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: vel-example\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\n"
                   "Tag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "vel_example.py,,\\n")
"""


@pytest.mark.slow
def test_a_virtual_environment_with_a_local_wheel(box: BaseSandbox) -> None:
    if not box.execute("python3 -c 'import ensurepip'").success:
        pytest.skip("needs ensurepip: apt-get install python3-venv")
    assert box.execute_python(WHEEL).success
    result = box.execute(
        "python3 -m venv v && v/bin/pip install -q --no-index ./vel_example-1.0*.whl && "
        "v/bin/python -c 'import vel_example; print(vel_example.answer)'"
    )
    assert result.stdout == "42\n", result.stderr
