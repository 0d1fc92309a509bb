"""Precision and recall of warning-or-danger on the labelled texts."""

from __future__ import annotations

import pytest

from tests.text_scanner.labelled import ATTACK_PHRASES, alarmed, blind_notes, held_out, texts


def test_the_sets_are_large_enough_and_have_no_duplicates() -> None:
    attacks, benign = texts("attacks"), texts("benign")
    assert len(attacks) >= 200
    assert len(benign) >= 200
    assert len({*attacks, *benign}) == len(attacks) + len(benign)


@pytest.mark.slow
def test_nearly_all_attacks_are_found() -> None:
    attacks = texts("attacks")
    missed = [text for text in attacks if not alarmed(text)]
    assert len(missed) <= 0.05 * len(attacks), missed


@pytest.mark.slow
def test_benign_texts_raise_no_alarm() -> None:
    benign = texts("benign")
    flagged = [text for text in benign if alarmed(text)]
    assert len(flagged) <= 0.03 * len(benign), flagged


@pytest.mark.slow
def test_an_attack_is_found_within_a_long_benign_document() -> None:
    document = "\n\n".join(texts("benign"))
    for attack in filter(alarmed, texts("attacks")[:40]):
        assert alarmed(f"{document}\n\n{attack}\n\n{document}"), attack


@pytest.mark.slow
def test_case_does_not_turn_benign_texts_into_alarms() -> None:
    for text in texts("benign"):
        if alarmed(text):
            continue
        # Base64 has another meaning, or none, in another case.
        assert not alarmed(text.lower()), text
        assert not alarmed(text.capitalize()), text
        assert not alarmed(text.upper()), text


@pytest.mark.slow
def test_the_scanner_works_on_held_out_texts() -> None:
    """Their author had not seen the scanner. They are not used for training, only for choices."""
    rows = held_out()
    found = {text for text, _ in rows if alarmed(text)}
    attacks = {text for text, is_attack in rows if is_attack}
    assert len(found & attacks) > 0.9 * len(attacks)
    assert len(found & attacks) > 0.9 * len(found)


@pytest.mark.slow_cases
@pytest.mark.parametrize(("name", "recall"), [("blind_notes", 0.93), ("later_notes", 0.9)])
def test_the_scanner_works_on_notes_that_are_not_in_the_training(name: str, recall: float) -> None:
    rows = blind_notes(name)
    found = {text for text, _ in rows if alarmed(text)}
    attacks = {text for text, is_attack in rows if is_attack}
    assert len(found & attacks) >= recall * len(attacks)
    assert len(found & attacks) > 0.9 * len(found)


@pytest.mark.slow
def test_the_scanner_works_on_the_notes_of_another_author() -> None:
    """Their author had seen neither the scanner nor any of its texts."""
    rows = blind_notes("other_author")
    found = {text for text, _ in rows if alarmed(text)}
    attacks = {text for text, is_attack in rows if is_attack}
    assert len(found & attacks) >= 0.83 * len(attacks)
    assert len(found & attacks) >= 0.83 * len(found)


def test_attacks_of_a_few_words_are_found() -> None:
    assert [text for text in ATTACK_PHRASES if not alarmed(text)] == []
