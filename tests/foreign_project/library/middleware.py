from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


def shop_csrf(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    """A middleware of the project."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers["X-Bookshop"] = "1"
        return response

    return answer
