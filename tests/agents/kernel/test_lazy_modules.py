"""Modules that are imported on first use."""

from __future__ import annotations

import builtins
import sys
import threading
from pathlib import Path

import pytest

from agents.kernel.lazy_modules import lazy_modules


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a package with the module `heavy`, which is not imported."""
    (tmp_path / "lazy_example").mkdir()
    (tmp_path / "lazy_example" / "__init__.py").write_text("")
    (tmp_path / "lazy_example" / "heavy.py").write_text(
        "class Failure(Exception): ...\nVALUE = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_example", "lazy_example.heavy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "lazy_example"


def imported_lazily(text: str) -> dict[str, object]:
    """Return the globals of a module with a block of these imports."""
    names: dict[str, object] = {"lazy_modules": lazy_modules}
    exec(f"with lazy_modules:\n    {text}", names)
    return names


def test_a_module_is_imported_when_an_attribute_is_read(package: str) -> None:
    heavy = imported_lazily(f"from {package} import heavy as h")["h"]
    assert f"{package}.heavy" not in sys.modules
    assert heavy.VALUE == 3  # type: ignore[attr-defined]
    with pytest.raises(heavy.Failure):  # type: ignore[attr-defined]
        raise sys.modules[f"{package}.heavy"].Failure


def test_a_missing_module_is_reported_at_its_first_use(package: str) -> None:
    missing = imported_lazily(f"from {package} import missing")["missing"]
    with pytest.raises(ModuleNotFoundError, match=f"{package}.missing"):
        missing.VALUE  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("text", ["import colorsys", "from . import heavy"])
def test_another_form_of_import_is_an_error(text: str) -> None:
    with pytest.raises(ImportError, match="from package import module"):
        imported_lazily(text)


def test_other_modules_and_threads_import_as_usual_during_a_block(package: str) -> None:
    usual = builtins.__import__
    found: list[object] = []

    def import_elsewhere() -> None:
        names: dict[str, object] = {}
        exec(f"from {package} import heavy", names)
        found.append(names["heavy"])

    with lazy_modules:
        thread = threading.Thread(target=import_elsewhere)
        thread.start()
        thread.join()
    assert found == [sys.modules[f"{package}.heavy"]]
    assert builtins.__import__ is usual
