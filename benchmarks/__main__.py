"""`python -m benchmarks`: run the benchmarks and print tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import concurrency, growth, load, memory, overhead, wake, watchers
from benchmarks.options import Options
from benchmarks.processes import HarnessFailed
from benchmarks.report import Report, machine, machine_line

BENCHMARKS: dict[str, Callable[[Options], Report]] = {
    "overhead": overhead.measure,
    "concurrency": concurrency.measure,
    "wake": wake.measure,
    "memory": memory.measure,
    "watchers": watchers.measure,
    "load": load.measure,
    "growth": growth.measure,
}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    defaults = Options()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", choices=BENCHMARKS, action="append", help="benchmark to run; repeat for several"
    )
    parser.add_argument(
        "--turns",
        type=lambda text: tuple(int(number) for number in text.split(",")),
        default=defaults.turns,
        help="tool turns of a run, such as 50,200; concurrency uses the first",
    )
    parser.add_argument(
        "--rounds", type=int, default=defaults.rounds, help="maximum number of rounds"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=defaults.seconds,
        help="time limit: no round starts that would end later",
    )
    parser.add_argument("--no-peers", action="store_true", help="do not measure other harnesses")
    parser.add_argument(
        "--concurrent-peers",
        action="store_true",
        help="also measure them in `concurrency` (takes minutes)",
    )
    parser.add_argument(
        "--runs", type=int, default=defaults.runs, help="simultaneous runs in `concurrency`"
    )
    parser.add_argument("--workers", type=int, default=defaults.workers, help="worker processes")
    parser.add_argument(
        "--full", action="store_true", help="run `load` and `growth` at full size (takes an hour)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    return parser.parse_args(arguments)


def main() -> int:
    arguments = parse(None)
    options = Options(
        turns=arguments.turns,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        peers=not arguments.no_peers,
        concurrent_peers=arguments.concurrent_peers,
        runs=arguments.runs,
        workers=arguments.workers,
        full=arguments.full,
    )
    facts = machine()
    print(f"{machine_line(facts)}\n", flush=True)
    results: dict[str, object] = {"machine": facts}
    failed = False
    for name in arguments.only or BENCHMARKS:
        try:
            report = BENCHMARKS[name](options)
        except HarnessFailed as error:
            print(f"{name} failed: {error}\n", file=sys.stderr, flush=True)
            failed = True
            continue
        print(f"{report.markdown()}\n", flush=True)
        results[name] = {"title": report.title, "notes": report.notes, **report.figures}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
