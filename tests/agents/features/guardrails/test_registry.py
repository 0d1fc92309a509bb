"""Guardrails and hooks can be registered; unusable ones are reported at the start."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from agents.features.guardrails.registry import chosen, guardrails, hook_calls
from tests.support.guards import PATH, registered


def test_the_built_in_guardrails_exist_and_agents_have_none_by_default() -> None:
    assert list(guardrails()) == ["secrets", "max_length"]
    assert chosen(()) == ()
    assert hook_calls() is None


def test_classes_and_objects_are_taken() -> None:
    with registered(("Mask", "no_word")):
        assert set(guardrails()) == {"secrets", "max_length", "mask", "no-word"}
        assert chosen(("mask", "secrets")) == ("mask", "secrets")
    assert "mask" not in guardrails()


def test_general_ones_come_first_and_once() -> None:
    with registered(("Everywhere", "Mask")):
        assert chosen(("mask", "everywhere")) == ("everywhere", "mask")


@pytest.mark.parametrize(
    ("key", "paths", "words"),
    [
        ("GUARDRAILS", [f"{PATH}.Nothing"], ["Nothing cannot be used", "ImportError"]),
        ("GUARDRAILS", ["no_such_module.Guard"], ["ModuleNotFoundError"]),
        ("GUARDRAILS", [f"{PATH}.WORD"], ["WORD cannot be used", "not callable"]),
        ("GUARDRAILS", [f"{PATH}.Watch"], ["is not a subclass of Guardrail of agents.features"]),
        ("GUARDRAILS", [f"{PATH}.Mask", f"{PATH}.Mask"], ["names more than once"]),
        ("GUARDRAILS", [f"{PATH}.Mask", f"{PATH}.SecondMask"], ["'mask'", "of another guardrail"]),
        ("GUARDRAILS", [f"{PATH}.Secrets2"], ["'secrets'", "of another guardrail"]),
        ("GUARDRAILS", [f"{PATH}.Unnamed"], ["has the name ''"]),
        ("GUARDRAILS", [f"{PATH}.Lazy"], ["checks nothing", "check_tool_result"]),
        ("HOOKS", [f"{PATH}.Mask"], ["is not a subclass of Hooks of agents.features"]),
        ("HOOKS", [f"{PATH}.Idle"], ["has no hook", "run_started"]),
        ("HOOKS", [f"{PATH}.Watch", f"{PATH}.Idle"], ["Idle has no hook"]),
    ],
)
def test_an_unusable_guardrail_is_an_error_of_the_checks(
    key: str, paths: Any, words: list[str]
) -> None:
    with override_settings(VEL={key: paths}):
        found = {error.id: str(error.msg) for error in run_checks()}
        text = found["vel.E012" if key == "GUARDRAILS" else "vel.E013"]
        for word in (*words, f'settings.VEL["{key}"]'):
            assert word in text
        with pytest.raises(ImproperlyConfigured):
            (guardrails if key == "GUARDRAILS" else hook_calls)()


def test_a_path_instead_of_a_list_is_an_error_of_the_checks() -> None:
    with override_settings(VEL={"GUARDRAILS": f"{PATH}.Mask"}):
        found = {error.id: str(error.msg) for error in run_checks()}
        assert 'settings.VEL["GUARDRAILS"]: expected a list of texts' in found["vel.E008"]
        with pytest.raises(ImproperlyConfigured):
            guardrails()


def test_good_settings_pass_the_checks() -> None:
    with registered(("Mask", "NoWord"), ("Watch", "Ends")):
        ids = {error.id for error in run_checks()}
        calls = hook_calls()
    assert not ids & {"vel.E008", "vel.E012", "vel.E013"}
    assert calls is not None
    assert [name for name, _, _ in calls["run_ended"]] == ["Watch", "Ends"]
    assert [name for name, _, _ in calls["before_tool"]] == ["Watch"]
