"""Prometheus text format, version 0.0.4."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agents.telemetry.counters import FAMILIES, Family, Values

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of current values, by label values in the order of `labels`."""

    name: str
    help: str
    values: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = field(default=())


def text_of(gauges: Iterable[Gauge], counted: Values) -> str:
    """Return gauges and all families of counters, including families without values."""
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
