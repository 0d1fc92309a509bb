"""Support for `Idempotency-Key`: a repeated create request gets the first response again."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from django.utils.crypto import salted_hmac
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
    return _decorated(method, "")


def idempotent_without(
    secret: str,
) -> Callable[[Method[View, Arguments]], Method[View, Arguments]]:
    """Decorate as `idempotent` a `post` that returns a secret in the field `secret`.

    The secret is not stored: in the response to a repeated request, the field is empty.
    """

    def decorate(method: Method[View, Arguments]) -> Method[View, Arguments]:
        return _decorated(method, secret)

    return decorate


def _decorated(method: Method[View, Arguments], secret: str) -> Method[View, Arguments]:
    @functools.wraps(method)
    def post(
        view: View, request: Request, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Response:
        return answer_once(request, lambda: method(view, request, *args, **kwargs), secret=secret)

    return post


def answer_once(request: Request, work: Callable[[], Response], *, secret: str = "") -> Response:
    """Return the response of `work`, or the stored response if the key was used before.

    `secret` names a field of the response that is not stored.
    """
    asked = _keyed(request)
    if asked is None:
        return work()
    done: list[Response] = []

    def answer_of_work() -> Answer:
        done[:] = [work()]
        return _answer_of(done[0], secret)

    answer, is_known = carry_out_once(asked, answer_of_work)
    return _response(answer) if is_known else done[0]


def answered_before(request: Request) -> Response | None:
    """Return the stored response, for views that do preparations outside of transactions."""
    asked = _keyed(request)
    answer = known_answer(asked) if asked is not None else None
    return _response(answer) if answer is not None else None


def _keyed(request: Request) -> Keyed | None:
    key = request.headers.get(HEADER)
    return None if key is None else Keyed(person(request), key, _digest(request))


def _digest(request: Request) -> str:
    """Return a digest of path and body. The order of names in JSON objects is irrelevant.

    It is stored, and has a key: nobody can try out the secrets of a body without it.
    """
    found = salted_hmac(HEADER, dump([request.method, request.path]), algorithm="sha256")
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


def _answer_of(response: Response, secret: str) -> Answer:
    body = {**response.data, secret: ""} if secret else response.data
    return Answer(response.status_code, body, response.get("Location", ""))


def _response(answer: Answer) -> Response:
    headers = {"Location": answer.location} if answer.location else {}
    headers[REPLAYED] = "true"
    return Response(answer.body, status=answer.status, headers=headers)
