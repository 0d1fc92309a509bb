"""Counters and histograms of one process.

Label values come from small sets. Some labels have names from operators, agent authors or other
servers, such as models, tools and error codes. For these, invalid names and names after the first
`MOST` are counted as `other`.
"""

from __future__ import annotations

import json
import re
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MOST = 50
"""Maximum number of different values of one label in a process."""
OTHER = "other"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,79}")
_SHORT = (0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_LONG = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)

Values = dict[str, dict[str, float]]
"""Values by family, then by the JSON of the label values.

The last label value of a histogram is `le`, or "sum".
"""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric. With `buckets` it is a histogram of seconds."""

    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


FAMILIES: Mapping[str, Family] = {
    "vel_run_claims_total": Family(
        "Runs that workers started or continued to drive.", ("recovered",)
    ),
    "vel_runs_ended_total": Family("Runs that have ended, by how.", ("status",)),
    "vel_run_duration_seconds": Family(
        "From the request to the end of a run, waiting for people included.", ("status",), _LONG
    ),
    "vel_model_calls_total": Family(
        "Model calls, each attempt of them, by how they ended.", ("provider", "model", "outcome")
    ),
    "vel_model_call_duration_seconds": Family(
        "How long attempts of model calls took.", ("provider", "model"), _SHORT
    ),
    "vel_model_tokens_total": Family("Tokens of replies.", ("provider", "model", "kind")),
    "vel_model_cost_dollars_total": Family(
        "Cost of replies whose price is known.", ("provider", "model")
    ),
    "vel_tool_calls_total": Family(
        "Attempts of tool calls, by how they ended.", ("tool", "outcome")
    ),
    "vel_tool_call_duration_seconds": Family("How long tools took.", ("tool",), _SHORT),
    "vel_sandbox_commands_total": Family("Commands in sandboxes, by how they ended.", ("outcome",)),
    "vel_sandbox_command_duration_seconds": Family(
        "How long commands in sandboxes took.", (), _SHORT
    ),
    "vel_sweeper_found_total": Family("Runs that a worker's sweeper found undriven."),
    "vel_spans_total": Family("Spans, by outcome: exported or dropped.", ("outcome",)),
}
_CHOSEN = frozenset({"model", "tool", "outcome"})
"""Labels with values from people or other servers."""


class Counters:
    """The counters of one process. Thread-safe; never raises for invalid values of labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Values = {}
        self._names: dict[str, set[str]] = {}
        self.in_row = False
        """Whether this process writes them to its own row."""

    def add(self, family: str, *labels: str, amount: float = 1.0) -> None:
        with self._lock:
            self._add(family, self._bounded(family, labels), amount)

    def observe(self, family: str, *labels: str, seconds: float) -> None:
        """Add one observation to a histogram."""
        buckets = FAMILIES[family].buckets
        place = bisect_left(buckets, seconds)
        le = f"{buckets[place]:g}" if place < len(buckets) else "+Inf"
        with self._lock:
            bounded = self._bounded(family, labels)
            self._add(family, (*bounded, le), 1.0)
            self._add(family, (*bounded, "sum"), max(0.0, seconds))

    def snapshot(self) -> Values:
        with self._lock:
            return {family: dict(values) for family, values in self._values.items()}

    def take(self) -> Values:
        """Return all values, and reset them to zero."""
        with self._lock:
            taken, self._values = self._values, {}
            return taken

    def put_back(self, taken: Values) -> None:
        """Add values from `take` that could not be stored."""
        with self._lock:
            self._values = added(self._values, taken)

    def _add(self, family: str, labels: tuple[str, ...], amount: float) -> None:
        values = self._values.setdefault(family, {})
        key = json.dumps(labels)
        values[key] = values.get(key, 0.0) + amount

    def _bounded(self, family: str, labels: tuple[str, ...]) -> tuple[str, ...]:
        names = FAMILIES[family].labels
        return tuple(
            self._known(family, name, value) if name in _CHOSEN else value
            for name, value in zip(names, labels, strict=True)
        )

    def _known(self, family: str, label: str, value: str) -> str:
        # Outcomes differ between families; models and tools are the same in all families.
        seen = self._names.setdefault(f"{family} {label}" if label == "outcome" else label, set())
        if value in seen:
            return value
        if len(seen) >= MOST or not _NAME.fullmatch(value):
            return OTHER
        seen.add(value)
        return value


def added(one: Values, other: Values) -> Values:
    """Return the sums of both, without changing them."""
    total = {family: dict(values) for family, values in one.items()}
    for family, values in other.items():
        into = total.setdefault(family, {})
        for key, value in values.items():
            into[key] = into.get(key, 0.0) + value
    return total


def without(one: Values, earlier: Values) -> Values:
    """Return the increase of `one` since `earlier`."""
    return {
        family: {
            key: value - earlier.get(family, {}).get(key, 0.0) for key, value in values.items()
        }
        for family, values in one.items()
    }


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of current values, by label values in the order of `labels`."""

    name: str
    help: str
    values: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = field(default=())


def text_of(gauges: Iterable[Gauge], counted: Values) -> str:
    """Return gauges and all families of counters in the text format of Prometheus.

    Families without values are included. `counted` are the values of the counters.
    """
    lines: list[str] = []
    for gauge in gauges:
        lines += [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} gauge"]
        for told, number in sorted(gauge.values.items()):
            lines.append(_sample(gauge.name, gauge.labels, told, number))
    for name, family in FAMILIES.items():
        kind = "histogram" if family.buckets else "counter"
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {kind}"]
        values = {tuple(json.loads(key)): number for key, number in counted.get(name, {}).items()}
        if family.buckets:
            lines += _histogram(name, family, values)
        else:
            lines += [
                _sample(name, family.labels, labels, number)
                for labels, number in sorted(values.items())
                if len(labels) == len(family.labels)  # or of another version of Vel
            ]
    return "\n".join(lines) + "\n"


def _histogram(name: str, family: Family, values: Mapping[tuple[str, ...], float]) -> list[str]:
    lines = []
    for labels in sorted({key[:-1] for key in values if len(key) == len(family.labels) + 1}):
        total = 0.0
        for le in (*(f"{bound:g}" for bound in family.buckets), "+Inf"):
            total += values.get((*labels, le), 0.0)
            lines.append(_sample(f"{name}_bucket", (*family.labels, "le"), (*labels, le), total))
        lines.append(_sample(f"{name}_sum", family.labels, labels, values.get((*labels, "sum"), 0)))
        lines.append(_sample(f"{name}_count", family.labels, labels, total))
    return lines


def _sample(name: str, names: tuple[str, ...], values: tuple[str, ...], number: float) -> str:
    told = ",".join(
        f'{label}="{_escaped(value)}"' for label, value in zip(names, values, strict=True)
    )
    return f"{name}{{{told}}} {number!r}" if told else f"{name} {number!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
