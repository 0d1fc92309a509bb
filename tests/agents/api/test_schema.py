"""The OpenAPI document is valid, complete, and the same in every project."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
import yaml
from django.test import Client, override_settings
from django.urls import path
from drf_spectacular.settings import spectacular_settings
from openapi_spec_validator import validate
from rest_framework.settings import api_settings

from agents.api.schema_document import api_document, document_at, make_document
from agents.api.urls import urlpatterns
from agents.doors.rest.base import SESSION_ONLY, ApiView, UnknownUrl
from agents.doors.rest.operations import operation_of
from tests.agents.api.rows import APIClient, client_for, make_user, problem_of

METHODS = ("get", "post", "put", "patch", "delete")


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, item[method])
        for path, item in api_document()["paths"].items()
        for method in METHODS
        if method in item
    ]


def test_it_is_valid_and_nothing_was_left_unclear() -> None:
    document, complaints = make_document(urlpatterns)
    assert complaints == []
    assert document["openapi"].startswith("3.1")
    validate({**document, "servers": [{"url": "/api/v1"}]})


def test_each_body_and_filter_documents_id_and_slug_of_agents() -> None:
    document = api_document()
    found = {}
    for _, _, said in operations():
        name = said["operationId"]
        for each in said.get("parameters", ()):
            if each["in"] == "query" and each["name"] == "agent":
                found[f"{name} ?"] = each.get("description", "")
        for content in said.get("requestBody", {}).get("content", {}).values():
            if "$ref" not in content["schema"]:
                continue
            body = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
            for field, words in body.get("properties", {}).items():
                if field == "agent":
                    found[name] = words.get("description", "")
                elif field == "agents":
                    found[name] = words["items"].get("description", "")
    assert {name for name, words in found.items() if "id or the slug" not in words} == set()
    assert {"create_run", "list_runs ?", "create_budget", "create_schedule"} <= found.keys()


def test_every_method_of_every_view_is_described() -> None:
    views = [pattern.callback.view_class for pattern in urlpatterns]
    answered = [
        (view, method)
        for view in views
        if view is not UnknownUrl
        for method in METHODS
        if hasattr(view, method)
    ]
    undescribed = [
        (view.__name__, method) for view, method in answered if operation_of(view, method) is None
    ]
    assert undescribed == []
    assert len(operations()) == len(answered)
    names = [said["operationId"] for _, _, said in operations()]
    assert len(set(names)) == len(names)


def test_a_method_without_a_description_is_complained_of() -> None:
    class Silent(ApiView):
        scopes = {"GET": "read"}

        def get(self, request: Any) -> None: ...

    _, complaints = make_document([path("silent", Silent.as_view())])
    assert len(complaints) == 1
    assert "has no @operation" in complaints[0]


def test_each_operation_documents_permissions_and_errors() -> None:
    views = {
        "/" + _template(str(pattern.pattern)): pattern.callback.view_class
        for pattern in urlpatterns
    }
    for method, template, said in operations():
        scope = views[template].scopes[method.upper()]
        tokens = [list(each["token"]) for each in said["security"] if "token" in each]
        assert tokens == ([] if scope == SESSION_ONLY else [[scope]]), (method, template)
        refusals = {"401", "403", "429", "503"} | ({"404"} if "{" in template else set())
        if "requestBody" in said:
            refusals |= {"400", "413", "415"}
        assert refusals <= set(said["responses"]), (method, template)


def _template(pattern: str) -> str:
    return re.sub(r"<\w+:(\w+)>", r"{\1}", pattern)


def forms() -> list[tuple[str, dict[str, Any]]]:
    """Return the schema of every JSON body and answer, by operation."""
    found = []
    for method, template, said in operations():
        bodies = [("body", said.get("requestBody", {}))]
        for where, each in [*bodies, *said["responses"].items()]:
            form = each.get("content", {}).get("application/json")
            if form is not None:
                found.append((f"{method} {template} {where}", form))
    return found


def test_every_body_and_answer_has_an_example_that_fits() -> None:
    schemas = {"components": api_document()["components"]}
    missing, unfit = [], []
    for name, form in forms():
        examples = [form["example"]] if "example" in form else []
        if not examples:
            missing.append(name)
        for example in examples:
            checker = jsonschema.Draft202012Validator({**schemas, **form["schema"]})
            unfit += [f"{name}: {error.message}" for error in checker.iter_errors(example)]
    assert missing == []
    assert unfit == []


@pytest.mark.django_db
def test_it_is_served_as_json_and_yaml_to_readers() -> None:
    client = client_for(make_user("ann"), "read")
    shown = client.get("/api/v1/schema")
    assert shown["Content-Type"] == "application/vnd.oai.openapi+json"
    document = json.loads(shown.content)
    assert document == json.loads(json.dumps(document_at("/api/v1")))
    as_yaml = client.get("/api/v1/schema?format=yaml")
    assert yaml.safe_load(as_yaml.content) == document
    assert client.get("/api/v1/schema?format=xml").status_code == 400
    assert problem_of(APIClient().get("/api/v1/schema"))["status"] == 401


@pytest.mark.django_db
def test_the_page_has_every_operation_and_no_script() -> None:
    client = Client()
    sent_away = client.get("/api/v1/docs")
    assert (sent_away.status_code, sent_away["Location"]) == (302, "/login/?next=/api/v1/docs")
    client.force_login(make_user("ann"))
    page = client.get("/api/v1/docs")
    text = page.content.decode()
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for forbidden in ("<script", "style=", 'href="http', 'src="http', "url("):
        assert forbidden not in text
    for _, template, said in operations():
        assert f'id="{said["operationId"]}"' in text
        assert f"<code>{template}</code>" in text


@override_settings(
    REST_FRAMEWORK={
        "DEFAULT_SCHEMA_CLASS": "rest_framework.schemas.openapi.AutoSchema",
        "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.BrowsableAPIRenderer"],
        "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
        "SCHEMA_COERCE_PATH_PK": True,
        "SCHEMA_COERCE_METHOD_NAMES": {"retrieve": "fetch"},
    }
)
def test_another_projects_settings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = make_document(urlpatterns)[0]
    api_settings.reload()
    theirs = {"TITLE": "Theirs", "COMPONENT_SPLIT_REQUEST": True, "OAS_VERSION": "3.0.3"}
    for name, value in theirs.items():
        monkeypatch.setattr(spectacular_settings, name, value)
    assert make_document(urlpatterns) == (usual, [])
    assert {name: getattr(spectacular_settings, name) for name in theirs} == theirs
