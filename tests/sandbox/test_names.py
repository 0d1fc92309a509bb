"""The names that `sandbox` offers are loaded when they are first used."""

import sandbox


def test_every_name_of_the_package_can_be_used() -> None:
    assert all(hasattr(sandbox, name) for name in sandbox.__all__)
    assert not hasattr(sandbox, "unknown")
