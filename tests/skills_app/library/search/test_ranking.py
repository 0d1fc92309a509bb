"""The score of a skill: the matches that raise it, the ignored ones, and its low cost."""

from __future__ import annotations

import time

import pytest

from skills_app.library.search.document import SkillDocument, analyse, dumped, loaded
from skills_app.library.search.ranking import rank

SHEETS = SkillDocument("spreadsheets", "Create and edit Excel workbooks with formulas and charts.")
POSTERS = SkillDocument("posters", "Design posters and flyers for print.")
MAIL = SkillDocument("mail", "Write and answer e-mails to customers.")
ALL = [SHEETS, POSTERS, MAIL]


def best(query: str, *documents: SkillDocument) -> str:
    return rank(query, documents or ALL)[0].name


def points(query: str, document: SkillDocument) -> float:
    return rank(query, [document])[0].score


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("add a column to budget.xlsx", "spreadsheets"),
        ("flyer for the concert", "posters"),
        ("replying to a complaint", "mail"),
        ("EXCELS", "spreadsheets"),
    ],
)
def test_users_use_other_words(query: str, name: str) -> None:
    assert best(query) == name


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("a postre for the concert", "Design posters."),
        ("a pooster for the concert", "Design posters."),
        ("a postr for the concert", "Design posters."),
        ("summarise the colours", "Summarizes colors."),
        ("summarize the colors", "Summarises colours."),
        ("authorisation for behaviour", "Authorization of behavior."),
    ],
)
def test_typing_errors_and_other_spellings_are_understood(query: str, text: str) -> None:
    assert points(query, SkillDocument("a", text)) >= 0.2


def test_a_known_word_is_not_a_typing_error() -> None:
    assert points("mails", SkillDocument("a", "Malls.")) == 0.0
    assert points("zorpla", SkillDocument("a", "Zorpla.")) > 0.2
    assert points("zorpla", SkillDocument("a", "Zorple.")) == 0.0


@pytest.mark.parametrize(
    "query",
    [
        "use the mail skill for the quarterly numbers of the Zurich plant",
        "quarterly numbers of the Zurich plant with skill mail",
        "night-owl the quarterly numbers of the Zurich plant",
        "a gizmo in the quarterly numbers of the Zurich plant",
    ],
)
def test_a_request_that_names_a_skill_or_has_its_trigger_finds_it(query: str) -> None:
    others = SkillDocument("night-owl", "Sings.", triggers=("gizmo*numbers",))
    wanted = "mail" if "mail" in query else "night-owl"
    assert best(query, *ALL, others) == wanted
    assert {match.name: match.score for match in rank(query, [*ALL, others])}[wanted] > 0.2


def test_an_analysed_skill_is_stored_exactly() -> None:
    analysed = analyse(SkillDocument("a-b", "Prunes röses “x” \ud800.", triggers=("x*",), body="y"))
    assert loaded(dumped(analysed)) == analysed


def test_everything_asked_for_scores_high() -> None:
    assert points("posters", POSTERS) > 0.9
    assert points("design posters for print", POSTERS) > 0.8


@pytest.mark.parametrize(
    "query",
    ["", "please help me", "the and of", "bake a cake", "who won the match in 1954", "12 345 7"],
)
def test_a_request_without_a_matching_skill_scores_low(query: str) -> None:
    assert all(match.score < 0.2 for match in rank(query, ALL))


def test_a_score_is_the_same_in_any_company() -> None:
    alone = points("answer this customer", MAIL)
    many = [SkillDocument(f"mail-{n}", MAIL.description) for n in range(30)]
    assert {m.name: m.score for m in rank("answer this customer", [MAIL, *many])}["mail"] == alone


def test_ties_go_by_priority_then_name() -> None:
    twins = [
        SkillDocument("twin", "Waters plants.", title="b"),
        SkillDocument("twin-a", "Sings.", priority=0),
        SkillDocument("twin-c", "Sings.", priority=1),
        SkillDocument("twin-b", "Sings.", priority=0),
    ]
    names = [match.name for match in rank("nothing of the kind", twins)]
    assert names == ["twin-c", "twin", "twin-a", "twin-b"]


def test_the_order_of_documents_does_not_count() -> None:
    assert rank("write a poster", ALL) == rank("write a poster", ALL[::-1])


def test_exclusions_of_a_skill_do_not_raise_its_score() -> None:
    rather = SkillDocument("a", "Writes letters. Do not use for spreadsheets.")
    assert points("spreadsheets", rather) == 0.0
    body = "Helps.\n\n## When not to use\n\nspreadsheets\n\n## Steps\n\nwrite"
    assert points("spreadsheets", SkillDocument("a", "Letters.", body=body)) == 0.0
    assert points("write", SkillDocument("a", "Letters.", body=body)) > 0.0


def test_when_to_use_weighs_more_than_the_rest_of_a_body() -> None:
    when = SkillDocument("a", "Helps.", body="## When to use\n\n- to prune roses\n")
    said = SkillDocument("b", "Helps.", body="## Notes\n\n- to prune roses\n")
    assert best("prune roses", said, when) == "a"


def test_a_comment_in_code_is_not_a_heading() -> None:
    code = SkillDocument("a", "Helps.", body="```sh\n# prune roses\n```\n")
    heading = SkillDocument("b", "Helps.", body="# Prune roses\n")
    assert best("prune roses", code, heading) == "b"


def test_fields_by_weight() -> None:
    by_field = [
        SkillDocument("roses", "Helps."),
        SkillDocument("a", "Helps.", tags=("roses",)),
        SkillDocument("b", "Prunes roses."),
        SkillDocument("c", "Helps.", files=("roses.py",)),
    ]
    assert [match.name for match in rank("roses", by_field)] == ["roses", "a", "b", "c"]


def test_chinese_is_searched() -> None:
    skills = [SkillDocument("a", "生成销售报告和图表"), SkillDocument("b", "翻译合同")]
    assert best("帮我做一份销售报告", *skills) == "a"


def test_analysed_once() -> None:
    document = SkillDocument("a", "Helps with roses.")
    assert analyse(document) is analyse(SkillDocument("a", "Helps with roses."))
    assert analyse(document) is not analyse(SkillDocument("a", "Helps with tulips."))


def test_a_hostile_body_costs_no_time() -> None:
    bodies = ["#" * 200_000, "```\n" * 50_000, ". " * 100_000, "a" * 500_000, "# when\n" * 50_000]
    start = time.process_time()
    for body in bodies:
        analyse(SkillDocument("a", body[:1000] * 20, body=body))
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_its_time_grows_with_the_library_and_not_faster() -> None:
    words = ["chart", "report", "invoice", "poster", "test", "deploy", "server", "mail", "photo"]
    library = [
        SkillDocument(
            f"skill-{n}",
            f"Does {words[n % 9]} and {words[n // 9 % 9]} number{n} for teams.",
            body=" ".join(f"{words[(n + k) % 9]} word{n * 7 + k}" for k in range(100)),
        )
        for n in range(1_000)
    ]
    rank("warm up", library)

    def least(size: int) -> float:
        taken = []
        for n in range(10):
            start = time.process_time()
            rank(f"make a chart of last quarter's sales for invoice {n}", library[:size])
            taken.append(time.process_time() - start)
        return min(taken)

    assert least(1_000) < 40 * least(100)
