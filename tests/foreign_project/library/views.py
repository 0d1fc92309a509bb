from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from rest_framework.response import Response


@login_required
def books(request: HttpRequest) -> HttpResponse:
    return HttpResponse("\n".join(request.user.books.values_list("title", flat=True)))


def own_errors(error: Exception, context: dict[str, Any]) -> Response:
    return Response("the shop's own way", status=418)


async def no_socket(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "websocket.close"})
