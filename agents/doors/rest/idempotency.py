"""Support for `Idempotency-Key`: a repeated create request gets the first response again."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.events.append import dump
from agents.services.idempotency import Answer, Keyed, carry_out_once, known_answer

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
CHUNK = 1 << 20

View = TypeVar("View", bound=ApiView)
Arguments = ParamSpec("Arguments")
Method = Callable[Concatenate[View, Request, Arguments], Response]


def idempotent(method: Method[View, Arguments]) -> Method[View, Arguments]:
    """Decorate a `post` that creates something and changes only rows.

    Its work and the key are stored in one transaction. Files that it writes must be unreferenced
    after a rollback. The parser has already read the body.
    """

    @functools.wraps(method)
    def post(
        view: View, request: Request, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Response:
        return answer_once(request, lambda: method(view, request, *args, **kwargs))

    return post


def answer_once(request: Request, work: Callable[[], Response]) -> Response:
    """Return the response of `work`, or the stored response if the key was used before."""
    asked = _keyed(request)
    if asked is None:
        return work()
    answer, is_known = carry_out_once(asked, lambda: _answer_of(work()))
    return _response(answer, is_known=is_known)


def answered_before(request: Request) -> Response | None:
    """Return the stored response, for views that do preparations outside of transactions."""
    asked = _keyed(request)
    answer = known_answer(asked) if asked is not None else None
    return _response(answer, is_known=True) if answer is not None else None


def _keyed(request: Request) -> Keyed | None:
    key = request.headers.get(HEADER)
    return None if key is None else Keyed(person(request), key, _digest(request))


def _digest(request: Request) -> str:
    """Return a digest of path and body. The order of names in JSON objects is irrelevant."""
    found = hashlib.sha256(dump([request.method, request.path]).encode())
    if request.FILES:
        form = request.data if isinstance(request.data, dict) else {}
        fields = sorted((name, value) for name, value in form.items() if isinstance(value, str))
        found.update(dump(fields).encode())
        for name, files in sorted(request.FILES.lists()):
            for file in files:
                content = hashlib.sha256()
                for chunk in file.chunks(CHUNK):
                    content.update(chunk)
                file.seek(0)
                found.update(dump([name, file.name, content.hexdigest()]).encode())
    else:
        plain = json.dumps(request.data, sort_keys=True, separators=(",", ":"))
        found.update(plain.encode())
    return found.hexdigest()


def _answer_of(response: Response) -> Answer:
    return Answer(response.status_code, response.data, response.get("Location", ""))


def _response(answer: Answer, *, is_known: bool) -> Response:
    headers = {"Location": answer.location} if answer.location else {}
    if is_known:
        headers[REPLAYED] = "true"
    return Response(answer.body, status=answer.status, headers=headers)
