"""Find the breaking differences between two versions of Vel's public documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.compatibility.schemas import Break, Comparison, Schema, follow

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def agent_file(old: Schema, new: Schema) -> list[Break]:
    """Return what breaks agent files that people have."""
    return sorted(set(Comparison(old, new).compare(old, new, "agent file", "accepts")))


def events(old: Schema, new: Schema) -> list[Break]:
    """Return what breaks programs that read events."""
    before, after = _event_types(old), _event_types(new)
    comparison = Comparison(old, new)
    found = set(_event_frame(comparison, old, new))
    for name, data in before.items():
        if name in after:
            # Without the reference, so that the subject is the type and not the Python class.
            found |= set(
                comparison.compare(follow(old, data)[1], follow(new, after[name])[1], name, "gives")
            )
        else:
            found.add(Break(name, "removed"))
    return sorted(found)


def _event_frame(comparison: Comparison, old: Schema, new: Schema) -> Iterator[Break]:
    frames = [
        {key: document[key] for key in ("type", "properties", "required")}
        for document in (old, new)
    ]
    return comparison.compare(*frames, "event", "gives")


def _event_types(document: Schema) -> dict[str, Schema]:
    return {
        one["properties"]["type"]["const"]: one["properties"]["data"] for one in document["oneOf"]
    }


def rest_api(old: Schema, new: Schema) -> list[Break]:
    """Return what breaks programs that use the REST API."""
    return sorted(set(_RestApi(old, new).breaks()))


class _RestApi:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._schemas = Comparison(old, new)

    def breaks(self) -> Iterator[Break]:
        for path, operations in self._old["paths"].items():
            now = self._new["paths"].get(path)
            if now is None:
                yield Break(path, "removed")
                continue
            for method in _METHODS:
                if method not in operations:
                    continue
                subject = f"{method.upper()} {path}"
                if method not in now:
                    yield Break(subject, "removed")
                    continue
                yield from self._operation(operations[method], now[method], subject)

    def _operation(self, old: Schema, new: Schema, subject: str) -> Iterator[Break]:
        if old.get("operationId") != new.get("operationId"):
            # Generated clients name their functions after it.
            yield Break(subject, f"operationId {old.get('operationId')} was renamed")
        yield from self._parameters(old, new, subject)
        yield from self._body(old, new, subject)
        yield from self._responses(old, new, subject)
        yield from _security(old, new, subject)

    def _parameters(self, old: Schema, new: Schema, subject: str) -> Iterator[Break]:
        before, after = self._by_name(self._old, old), self._by_name(self._new, new)
        for (place, name), parameter in before.items():
            where = f"{subject} {name}"
            now = after.get((place, name))
            if now is None:
                yield Break(where, f"{place} parameter removed")
                continue
            if now.get("required") and not parameter.get("required"):
                yield Break(where, "now required")
            yield from self._schemas.compare(
                parameter.get("schema", {}), now.get("schema", {}), where, "accepts"
            )
        for place, name in sorted(after.keys() - before.keys()):
            if after[place, name].get("required"):
                yield Break(f"{subject} {name}", "new required parameter")

    @staticmethod
    def _by_name(document: Schema, operation: Schema) -> dict[tuple[str, str], Schema]:
        found = [follow(document, one)[1] for one in operation.get("parameters", ())]
        return {(one["in"], one["name"]): one for one in found}

    def _body(self, old: Schema, new: Schema, subject: str) -> Iterator[Break]:
        _, before = follow(self._old, old.get("requestBody", {}))
        _, after = follow(self._new, new.get("requestBody", {}))
        if after.get("required") and not before.get("required"):
            yield Break(f"{subject} body", "now required")
        if before and not after:
            yield Break(f"{subject} body", "removed")
            return
        for kind, content in before.get("content", {}).items():
            if kind not in after["content"]:
                yield Break(f"{subject} body", f"{kind} is no longer accepted")
                continue
            yield from self._schemas.compare(
                content.get("schema", {}),
                after["content"][kind].get("schema", {}),
                f"{subject} body",
                "accepts",
            )

    def _responses(self, old: Schema, new: Schema, subject: str) -> Iterator[Break]:
        for status, response in old.get("responses", {}).items():
            if not status.startswith("2"):
                continue
            where = f"{subject} {status}"
            if status not in new.get("responses", {}):
                yield Break(where, "removed")
                continue
            _, before = follow(self._old, response)
            _, after = follow(self._new, new["responses"][status])
            for name in before.get("headers", {}).keys() - after.get("headers", {}).keys():
                yield Break(where, f"the header {name} was removed")
            for kind, content in before.get("content", {}).items():
                if kind not in after.get("content", {}):
                    yield Break(where, f"{kind} is no longer sent")
                    continue
                yield from self._schemas.compare(
                    content.get("schema", {}),
                    after["content"][kind].get("schema", {}),
                    where,
                    "gives",
                )


def _security(old: Schema, new: Schema, subject: str) -> Iterator[Break]:
    """Yield each way to sign in that no longer suffices, for example because of its scopes."""
    after: list[dict[str, Any]] = new.get("security", [])
    for way in old.get("security", [{}]):
        if after and not any(_suffices(way, one) for one in after):
            yield Break(subject, f"{_shown(way)} no longer suffices")


def _suffices(has: dict[str, Any], needed: dict[str, Any]) -> bool:
    return all(name in has and set(scopes) <= set(has[name]) for name, scopes in needed.items())


def _shown(way: dict[str, Any]) -> str:
    if not way:
        return "no sign-in"
    return " and ".join(
        f"a {name}" + (f" with the scope {', '.join(scopes)}" if scopes else "")
        for name, scopes in way.items()
    )
