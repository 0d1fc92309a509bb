"""Declare each setting once: name, type, default, unit and meaning.

    class ClockSettings(FeatureSettings):
        \"\"\"Clocks\"\"\"

        CLOCK_URL: str = "https://clock.example/"
        \"\"\"Address of the clock.\"\"\"
        CLOCK_PATIENCE: Seconds = 5.0
        \"\"\"How long to wait for its answer.\"\"\"

`ClockSettings.now().CLOCK_URL` is `settings.VEL["CLOCK_URL"]`, or the default if that is not set.
Vel's own project fills `settings.VEL` from the environment: `VEL_CLOCK_URL` sets `CLOCK_URL`. The
module `settings` of an app lists its classes as `SETTINGS`. `make reference` writes
docs/reference/settings.md from the declarations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, FrozenInstanceError
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from django.apps import apps
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_LONGEST = 200
"""The number of characters of an invalid value that an error shows."""


class About(NamedTuple):
    """More about a setting than its type, as in `Annotated[int, About(unit="bytes")]`."""

    unit: str = ""
    at_least: float | None = None
    is_secret: bool = False
    """Whether errors and `repr` hide the value."""
    variables: tuple[str, ...] | None = None
    """The environment variables of the setting, by default `VEL_` and the name.

    The first set one counts.

    Empty: only `settings.VEL` has this setting.
    """
    parse: Callable[[str], Any] | None = None
    """Converts the text of an environment variable.

    The text of a `ValueError` completes "expected …".
    """
    expected: str = ""
    """The allowed values, as a text that completes "expected …"."""
    default: str = ""
    """The default as docs/reference/settings.md shows it, if it is computed."""
    deprecated: str = ""
    """What to use instead, and the release that removes it, as one sentence. Empty: in use."""

    def with_more(self, other: About) -> About:
        """Return a copy with the fields that `other` sets."""
        more = {key: value for key, value in other._asdict().items() if value != _NOTHING[key]}
        return self._replace(**more)


Bytes = Annotated[int, About(unit="bytes", at_least=0)]
Seconds = Annotated[float, About(unit="seconds", at_least=0)]
Days = Annotated[int, About(unit="days", at_least=0)]
Count = Annotated[int, About(at_least=0)]
Positive = Annotated[int, About(at_least=1)]
Secret = Annotated[str, About(is_secret=True)]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class FeatureSettings:
    """The settings of one feature. A subclass works as a frozen dataclass with defaults.

    Its docstring becomes a section of docs/reference/settings.md: the first line is the heading,
    and links are relative to this page.

    Subclasses need no decorator: `dataclasses.dataclass` would compile six methods for each class,
    which took most of the time that Vel needs to read its settings.
    """

    DICTIONARY: ClassVar[str] = "VEL"
    """The name of the dictionary in Django's settings. Empty: only the environment is read."""
    PREFIX: ClassVar[str] = "VEL_"
    """The start of the names of the environment variables."""
    IN_PROGRAMS: ClassVar[bool] = False
    """Whether programs without a Django project read the environment (docs/guides/python.md)."""
    WITHOUT_DJANGO: ClassVar[bool] = False
    """Whether the defaults apply if Django has no settings. Otherwise that is an error."""

    def __init__(self, **values: Any) -> None:
        known = {one.name for one in settings_of(type(self))}
        if unknown := sorted(values.keys() - known):
            raise TypeError(f"{type(self).__name__} has no setting {unknown[0]}.")
        vars(self).update(values)  # the defaults are attributes of the class

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __repr__(self) -> str:
        shown = (
            f"{one.name}={getattr(self, one.name)!r}"
            for one in settings_of(type(self))
            if not one.about.is_secret
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def now(cls) -> Self:
        """Return the current settings.

        Raises `ImproperlyConfigured` for an invalid value of one of them, and for an unknown key in
        the dictionary.
        """
        found: Self | None = _in_force.get(cls)
        return _build(cls) if found is None else found


class Setting:
    """One declared setting."""

    def __init__(
        self, name: str, declared_in: type[FeatureSettings], annotation: Any, default: Any
    ) -> None:
        self.name = name
        self.declared_in = declared_in
        self.default = default
        self.type = annotation
        """The type without the additions of `Annotated`."""
        self.about = About()
        if get_origin(annotation) is Annotated:
            self.type, *added = get_args(annotation)
            for one in added:
                if isinstance(one, About):
                    self.about = self.about.with_more(one)

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the environment variables that set this setting."""
        named = self.about.variables
        return (f"{self.declared_in.PREFIX}{self.name}",) if named is None else named

    @property
    def place(self) -> str:
        return f'settings.{self.declared_in.DICTIONARY}["{self.name}"]'

    @property
    def is_list(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def expected(self) -> str:
        """Return the allowed values, as a text that completes "expected …"."""
        if self.about.expected:
            return self.about.expected
        number = {int: "a whole number", float: "a number"}.get(self.type)
        if number is not None:
            unit = f" of {self.about.unit}" if self.about.unit else ""
            least = self.about.at_least
            return f"{number}{unit}" + ("" if least is None else f", at least {least:g}")
        if self.type is bool:
            return "1 or 0"
        if self.is_list:
            return "a list of texts"
        return "a path" if self.type in (Path, Path | None) else "a text"

    def read(self, environ: Mapping[str, str]) -> Any:
        """Return the setting's value in the environment, or `MISSING`.

        An empty variable counts as not set, except for a list, which is then empty. Raises
        `ImproperlyConfigured` for an invalid value.
        """
        for variable in self.variables:
            raw = environ.get(variable)
            if raw is None or not (raw.strip() or self.is_list):
                continue
            try:
                return self._parsed(raw.strip())
            except ValueError as error:
                raise ImproperlyConfigured(self._refusal(variable, raw, str(error))) from None
        return MISSING

    def checked(self, value: Any) -> Any:
        """Return a value from Django's settings as the declared type.

        `None` becomes the default. Raises `ImproperlyConfigured` for an invalid value.
        """
        if value is None:
            return self.default
        try:
            return self._converted(value)
        except (TypeError, ValueError, OverflowError):
            raise ImproperlyConfigured(self._refusal(self.place, value)) from None

    def _refusal(self, where: str, value: Any, expected: str = "") -> str:
        expected = expected or self.expected
        if self.about.is_secret:
            return f"{where}: expected {expected}, got {type(value).__name__}."
        shown = repr(value)
        if len(shown) > _LONGEST:
            shown = f"{shown[:_LONGEST]}…"
        return f"{where}: expected {expected}, got {shown}."

    def _parsed(self, text: str) -> Any:
        if self.about.parse is not None:
            return self.about.parse(text)
        if self.is_list:
            return split(text)
        if self.type is bool:
            if text.lower() in _TRUE | _FALSE:
                return text.lower() in _TRUE
            raise ValueError
        if self.type is int or self.type is float:
            return self._number(text)
        return Path(text).expanduser() if self.type in (Path, Path | None) else text

    def _number(self, value: Any) -> int | float:
        try:
            number: int | float = self.type(value)
        except (ValueError, OverflowError):
            raise ValueError from None
        least = self.about.at_least
        if not math.isfinite(number) or (least is not None and number < least):
            raise ValueError
        return number

    def _converted(self, value: Any) -> Any:
        if self.is_list:
            if isinstance(value, str | bytes):
                raise ValueError
            return tuple(map(_text, value))
        if self.type is str:
            return _text(value)
        if self.type == Path | None and not value:
            return None
        if self.type in (Path, Path | None):
            return Path(value)
        if isinstance(value, str):
            return self._parsed(value.strip())
        if self.type is bool:
            if value not in (0, 1):
                raise ValueError
            return bool(value)
        if self.type is int and value != int(value):
            raise ValueError
        return self._number(value)


def _text(value: Any) -> str:
    """Return a text or a path as text. Raises `ValueError` for bytes."""
    found = os.fspath(value)
    if not isinstance(found, str):
        raise ValueError
    return found


_ABOUT_CLASS = frozenset(FeatureSettings.__annotations__)
_NOTHING = About()._asdict()

_settings: dict[type[FeatureSettings], tuple[Setting, ...]] = {}
_in_force: dict[type[FeatureSettings], Any] = {}


def split(text: str) -> tuple[str, ...]:
    """Return the items of a comma-separated list, without surrounding blanks."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def settings_of(declared_in: type[FeatureSettings]) -> tuple[Setting, ...]:
    """Return the settings that the class declares or inherits, in order."""
    found = _settings.get(declared_in)
    if found is None:
        hints: dict[str, Any] = {}
        for base in reversed(declared_in.__mro__):
            hints |= vars(base).get("__annotations__", {})
        # Refuse annotations that are strings: evaluating them takes ten times as long. Vel's own
        # modules of settings therefore do not import `annotations` from `__future__`.
        if any(isinstance(hint, str) for name, hint in hints.items() if name not in _ABOUT_CLASS):
            hints = get_type_hints(declared_in, include_extras=True)
        found = _settings[declared_in] = tuple(
            Setting(name, declared_in, hint, getattr(declared_in, name))
            for name, hint in hints.items()
            if name not in _ABOUT_CLASS
        )
    return found


def declarations(app_names: Iterable[str]) -> tuple[type[FeatureSettings], ...]:
    """Import the module `settings` of each app that has one, and return the classes in `SETTINGS`.

    Django's apps need not be loaded. Raises `ImproperlyConfigured` if two classes declare the same
    name.
    """
    found: dict[type[FeatureSettings], None] = {}
    for name in app_names:
        module = f"{name.partition('.apps.')[0]}.settings"
        try:
            found |= dict.fromkeys(getattr(import_module(module), "SETTINGS", ()))
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    refuse_duplicates(found)
    return tuple(found)


def refuse_duplicates(classes: Iterable[type[FeatureSettings]]) -> None:
    """Raise `ImproperlyConfigured` if a setting or a variable is declared twice."""
    declared: dict[str, Setting] = {}
    for setting in _all_of(classes):
        places = [setting.place] if setting.declared_in.DICTIONARY else []
        for name in (*setting.variables, *places):
            other = declared.setdefault(name, setting)
            if other is not setting:
                first, second = (
                    f"{one.declared_in.__module__}.{one.declared_in.__qualname__}"
                    for one in (other, setting)
                )
                raise ImproperlyConfigured(
                    f"{name} is declared twice, in {first} and in {second}: rename one."
                )


def read_environment(
    classes: Iterable[type[FeatureSettings]], environ: Mapping[str, str] = os.environ
) -> dict[str, dict[str, Any]]:
    """Return the values in the environment, by the name of the dictionary in Django's settings.

    Raises `ImproperlyConfigured`, with the name of the variable, for an invalid value.
    """
    classes = tuple(classes)
    found: dict[str, dict[str, Any]] = {one.DICTIONARY: {} for one in classes}
    for setting in _all_of(classes):
        value = setting.read(environ)
        if value is not MISSING:
            found[setting.declared_in.DICTIONARY][setting.name] = value
    return found


@cache
def installed() -> tuple[type[FeatureSettings], ...]:
    """Return the classes of the installed apps whose config has `declares_settings = True`."""
    return declarations(
        config.name
        for config in apps.get_app_configs()
        if getattr(config, "declares_settings", False)
    )


def find_problems() -> Iterator[tuple[str, str]]:
    """Yield (name of the Django setting, sentence) for each error in Vel's settings.

    The Django setting is a dictionary such as `VEL`. An error is an invalid value, an unknown key,
    or a setting that is no dictionary.
    """
    for dictionary in dict.fromkeys(one.DICTIONARY for one in installed()):
        try:
            given = _given(dictionary)
        except ImproperlyConfigured as error:
            yield dictionary, str(error)
            continue
        known = _known(installed(), dictionary)
        yield from ((dictionary, problem) for problem in _unknown(dictionary, given, known))
        for setting in known.values():
            try:
                if setting.name in given:
                    setting.checked(given[setting.name])
            except ImproperlyConfigured as error:
                yield dictionary, str(error)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known name, "" if none is similar."""
    found = get_close_matches(name, known, n=1, cutoff=0.75)
    return f"Did you mean {found[0]}?" if found else ""


def forget() -> None:
    """Discard the cached values, so that Django's settings are read again.

    The declarations depend only on the installed apps, and stay cached.
    """
    _in_force.clear()
    _refuse_unknown.cache_clear()


def _all_of(classes: Iterable[type[FeatureSettings]]) -> Iterator[Setting]:
    return (setting for declared_in in classes for setting in settings_of(declared_in))


@cache
def _known(classes: tuple[type[FeatureSettings], ...], dictionary: str) -> dict[str, Setting]:
    within = [declared_in for declared_in in classes if dictionary == declared_in.DICTIONARY]
    return {setting.name: setting for setting in _all_of(within)}


def _given(dictionary: str) -> Mapping[str, Any]:
    given = getattr(django_settings, dictionary, {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(
            f"settings.{dictionary}: expected a dictionary, got {type(given).__name__}."
        )
    return given


def _build(declared_in: type[FeatureSettings]) -> Any:
    if not declared_in.DICTIONARY:
        read = ((one.name, one.read(os.environ)) for one in settings_of(declared_in))
        return declared_in(**{name: value for name, value in read if value is not MISSING})
    if declared_in.WITHOUT_DJANGO and not (
        django_settings.configured or "DJANGO_SETTINGS_MODULE" in os.environ
    ):
        return declared_in()
    given = _given(declared_in.DICTIONARY)
    if apps.apps_ready:
        _refuse_unknown(declared_in.DICTIONARY)
    built = declared_in(
        **{
            one.name: one.checked(given[one.name])
            for one in settings_of(declared_in)
            if one.name in given
        }
    )
    _in_force[declared_in] = built
    return built


@cache
def _refuse_unknown(dictionary: str) -> None:
    known = _known(installed(), dictionary)
    for problem in _unknown(dictionary, _given(dictionary), known):
        raise ImproperlyConfigured(problem)


def _unknown(
    dictionary: str, given: Mapping[str, Any], known: Mapping[str, Setting]
) -> Iterator[str]:
    for name in given:
        if name not in known:
            listed = "Remove it; docs/reference/settings.md lists the settings."
            advice = nearest(str(name), known) or listed
            yield f"settings.{dictionary} has an unknown key {name!r}. {advice}"


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        installed.cache_clear()
        _known.cache_clear()
    if setting == "INSTALLED_APPS" or setting.startswith("VEL"):
        forget()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.settings")
