"""The users of a loaded site: watchers of its runs and approvers, over HTTP and sockets."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import threading
import time
from collections import Counter
from datetime import datetime
from http.client import HTTPConnection
from typing import Any

from protocol import serve
from websockets.asyncio.client import connect

from agents.events.catalogue.runs import RUN_ENDS

POLL_SECONDS = 0.5
"""The pause between two requests of an approver for the queue."""
PATIENCE = 60.0


class Crowd:
    """Watchers that follow one run after the other, and approvers that approve every request."""

    def __init__(self) -> None:
        self._delays: list[float] = []
        self._requests: list[float] = []
        self._answers: Counter[str] = Counter()
        self._done = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(
        self,
        port: int,
        readers: list[str],
        approvers: list[str],
        watchers: int,
        runs: list[str],
        decisions: int,
    ) -> None:
        """Start all threads. `readers`, `approvers`: tokens. Every second watcher has a socket."""
        self._port, self._decisions = port, decisions
        watching = threading.Thread(
            target=lambda: asyncio.run(self._watch(readers, watchers, runs))
        )
        self._threads = [watching]
        for token in approvers:
            self._threads.append(threading.Thread(target=self._approve, args=(token,)))
        for thread in self._threads:
            thread.start()

    def end(self) -> dict[str, Any]:
        """Return the seconds from an event to its arrival, and those of the approvers' requests."""
        self._done.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        return {
            "stream": _figures(self._delays),
            "requests": _figures(self._requests),
            "answers": dict(self._answers),
        }

    async def _watch(self, tokens: list[str], count: int, runs: list[str]) -> None:
        watchers = [
            asyncio.create_task(
                self._follow(runs[number::count], tokens[number % len(tokens)], number % 2 == 1)
            )
            for number in range(count)
        ]
        await asyncio.to_thread(self._done.wait)
        for task in watchers:
            task.cancel()
        for ended in await asyncio.gather(*watchers, return_exceptions=True):
            if isinstance(ended, Exception):
                self._answers[f"watcher: {type(ended).__name__}"] += 1

    async def _follow(self, runs: list[str], token: str, socket: bool) -> None:
        for run in runs:
            began = time.time()
            watch = self._over_socket if socket else self._over_http
            async for event in watch(run, token):
                said = datetime.fromisoformat(event["ts"]).timestamp()
                if said > began:  # not an event from before the connection
                    self._delays.append(time.time() - said)
                if event["type"] in RUN_ENDS:
                    break

    async def _over_socket(self, run: str, token: str) -> Any:
        address = f"ws://localhost:{self._port}/ws/runs/{run}/?after=0"
        headers = {"Authorization": f"Token {token}"}
        async with connect(address, additional_headers=headers, open_timeout=PATIENCE) as client:
            async for text in client:
                event = json.loads(text)
                if "seq" in event and "ts" in event:
                    yield event

    async def _over_http(self, run: str, token: str) -> Any:
        reader, writer = await asyncio.open_connection("localhost", self._port)
        head = f"GET /api/v1/runs/{run}/events/stream HTTP/1.0\r\nHost: localhost\r\n"
        writer.write(f"{head}Authorization: Token {token}\r\n\r\n".encode())
        try:
            async for line in reader:
                if line.startswith(b'data: {"run_id"'):
                    yield json.loads(line[6:])
        finally:
            writer.close()

    def _approve(self, token: str) -> None:
        headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        connection = HTTPConnection("localhost", self._port, timeout=PATIENCE)

        def ask(method: str, path: str, body: object = None) -> tuple[int, Any]:
            began = time.monotonic()
            data = None if body is None else json.dumps(body)
            try:
                connection.request(method, f"/api/v1/{path}", body=data, headers=headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            finally:
                self._requests.append(time.monotonic() - began)

        while not self._done.is_set() and self._answers["approved"] < self._decisions:
            try:
                _, found = ask("GET", "approvals?status=pending&limit=50")
                waiting = found["results"]
                for request in random.sample(waiting, min(3, len(waiting))):
                    body = {"decision": "approve", "digest": request["digest"]}
                    status, _ = ask("POST", f"approvals/{request['id']}/decide", body)
                    # Another approver may have decided first.
                    self._answers["approved" if status == 200 else f"answer {status}"] += 1
            except OSError as error:
                self._answers[f"approver: {type(error).__name__}"] += 1
                connection.close()
            self._done.wait(POLL_SECONDS)
        connection.close()


def _figures(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {"count": len(seconds), "p50_s": 0.0, "p95_s": 0.0}
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {"count": len(seconds), "p50_s": statistics.median(seconds), "p95_s": p95}


if __name__ == "__main__":
    crowd = Crowd()
    serve({"begin": crowd.begin, "end": crowd.end})
