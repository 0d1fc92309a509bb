"""csv-analytics with realistic files."""

from __future__ import annotations

import json
import statistics
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from agents.demo.task import data_bytes
from tests.skills_app.builtin.desk import Desk
from tests.skills_app.builtin.samples import SALES

pytestmark = pytest.mark.bubblewrap

PROFILE, AGGREGATE = "csv-analytics/profile_csv.py", "csv-analytics/aggregate_csv.py"
CHART, CLEAN = "csv-analytics/chart_csv.py", "csv-analytics/clean_csv.py"
GERMAN = (
    "Umsätze 2024\n\n"
    "Region;Datum;Betrag;Kürzel\n"
    "Nord;03.04.2024;1.234,50;007\n"
    'Süd;04.04.2024;2,5;"008"\n'
    '"Ost\nneu";05.04.2024;n/a;009\n'
    "West;06.04.2024;-10,25\n"
    "West;07.04.2024;0,75;010;zu viel\n"
)


def columns(profile: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {column["name"]: column for column in profile["column_profiles"]}


@pytest.mark.slow_cases
@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_german_file_in_any_encoding(desk: Desk, encoding: str) -> None:
    path = desk.upload("umsatz.csv", GERMAN.replace("\n", "\r\n").encode(encoding))
    profile = desk.json(PROFILE, path, "--json")
    assert profile["encoding"] == encoding
    assert (profile["delimiter"], profile["decimal"]) == (";", ",")
    assert (profile["rows"], profile["rows_of_another_length"]) == (5, 2)
    assert list(columns(profile)) == ["Region", "Datum", "Betrag", "Kürzel"]
    amount, day, code = (columns(profile)[name] for name in ("Betrag", "Datum", "Kürzel"))
    assert (amount["type"], amount["missing"], amount["sum"]) == ("number", 1, 1227.5)
    assert (day["first"][:10], day["last"][:10]) == ("2024-04-03", "2024-04-07")
    assert code["type"] == "text", "leading zeros must not be lost"
    assert code["missing"] == 1
    said = " ".join(profile["notes"])
    assert "title" in said
    assert "more or fewer cells" in said
    assert ("not UTF-8" in said) == (encoding == "cp1252")


def test_the_statistics_are_right(desk: Desk) -> None:
    values = [3.25, -7.0, 12.5, 0.1, 0.2, 44.0, 12.5, 1000.0]
    path = desk.upload("numbers.csv", "v,e\n" + "".join(f"{value},\n" for value in values))
    facts = columns(desk.json(PROFILE, path, "--json"))
    found = facts["v"]
    assert found["mean"] == pytest.approx(statistics.fmean(values))
    assert found["standard_deviation"] == pytest.approx(statistics.stdev(values))
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    assert [found["quartile_1"], found["median"], found["quartile_3"]] == pytest.approx(quartiles)
    assert (found["min"], found["max"], found["distinct"]) == (-7, 1000, 7)
    assert found["outliers"] == 1
    assert facts["e"]["type"] == "empty"


def test_odd_cells_of_a_column_are_reported(desk: Desk) -> None:
    rows = [f"{at}.5,yes\n" for at in range(40)] + [
        "forty,no\n",
        "(12.5),no\n",
        '"€ 1,250.00",no\n',
    ]
    path = desk.upload("odd.csv", "amount\tx,ok\n" + "".join(rows))
    column = columns(desk.json(PROFILE, path, "--json"))["amount x"]
    assert column["type"] == "number"
    assert column["odd_cells"] == 1
    assert column["odd_examples"] == ["forty (row 41)"]
    assert (column["min"], column["max"]) == (-12.5, 1250)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("content", "delimiter", "header"),
    [
        ("a\tb\n1\t2\n", "\t", ["a", "b"]),
        ("a|b|c\n1|2|3\n", "|", ["a", "b", "c"]),
        ("name;price\nx;1,5\ny;2,5\n", ";", ["name", "price"]),
        ("1,5;2,5\n3,5;4,5\n", ";", ["column_1", "column_2"]),
        ("only\none\ntwo\n", ",", ["only"]),
        ("a,a,,b \n1,2,3,4\n", ",", ["a", "a_2", "column_3", "b"]),
        ('"x, y","z"\n"1","2\n3"\n', ",", ["x, y", "z"]),
    ],
)
def test_delimiter_and_header(desk: Desk, content: str, delimiter: str, header: list[str]) -> None:
    profile = desk.json(PROFILE, desk.upload("f.csv", content), "--json")
    assert profile["delimiter"] == delimiter
    assert list(columns(profile)) == header
    assert profile["rows_of_another_length"] == 0


def test_unclear_dates_are_reported_and_can_be_settled(desk: Desk) -> None:
    path = desk.upload("d.csv", "day,n\n03/04/2024,1\n05/04/2024,2\n")
    profile = desk.json(PROFILE, path, "--json")
    assert "--day-first" in " ".join(profile["notes"])
    assert columns(profile)["day"]["first"].startswith("2024-03-04")
    settled = desk.json(PROFILE, path, "--json", "--day-first")
    assert settled["notes"] == []
    assert columns(settled)["day"]["first"].startswith("2024-04-03")
    clear = desk.upload("c.csv", "day\n03/04/2024\n25/04/2024\n")
    assert columns(desk.json(PROFILE, clear, "--json"))["day"]["first"].startswith("2024-04-03")


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", 5, "is empty"),
        (b"\n\n", 5, "no rows"),
        (b"a,b\n", 5, "no rows below the header"),
        (b"PK\x03\x04" + bytes(50), 3, "read_excel"),
        (b"%PDF-1.4", 3, "pdf-processing"),
        (b"SQLite format 3\0", 3, "data-query"),
    ],
)
def test_a_file_without_a_table_has_its_own_exit_code(
    desk: Desk, content: bytes, code: int, words: str
) -> None:
    result = desk.script(PROFILE, desk.upload("f.csv", content))
    assert (result.exit_code, "Traceback" in result.stderr) == (code, False)
    assert words in result.stderr


def test_groups_measures_and_conditions(desk: Desk) -> None:
    path = desk.upload("sales.csv", SALES)
    found = desk.json(
        AGGREGATE, path, "--json", "--by", "region", "--measure", "sum:amount", "--measure",
        "median:amount", "--measure", "count", "--sort=-sum:amount",
    )  # fmt: skip
    assert found["rows"] == [
        {"region": "South", "sum:amount": 1276.5, "median:amount": 638.25, "count": 2},
        {"region": "North", "sum:amount": 209.75, "median:amount": 80.25, "count": 3},
        {"region": "West", "sum:amount": None, "median:amount": None, "count": 1},
    ]
    months = desk.json(
        AGGREGATE, path, "--json", "--by", "month:ordered_on", "--where", "amount>=30",
        "--where", "product~WIRE", "--measure", "distinct:region",
    )  # fmt: skip
    assert months["rows"] == [
        {"month:ordered_on": "2024-01", "distinct:region": 1},
        {"month:ordered_on": "2024-03", "distinct:region": 2},
    ]
    assert months["notes"] == ["3 of 6 rows meet the conditions."]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "nothing"], "The columns are: order, ordered_on"),
        (["--measure", "sum"], "sum:amount"),
        (["--measure", "mode:amount"], "median"),
        (["--where", "amount"], "column=value"),
        (["--sort", "amount"], "the result has"),
    ],
)
def test_a_wrong_call_lists_the_valid_names(desk: Desk, arguments: list[str], words: str) -> None:
    result = desk.script(AGGREGATE, desk.upload("sales.csv", SALES), *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_sums_are_exact_in_any_order(desk: Desk) -> None:
    rows = ["0.1\n"] * 30 + ["1e16\n", "1\n", "-1e16\n"]
    paths = (
        desk.upload(name, "v\n" + "".join(order))
        for name, order in (("f.csv", rows), ("b.csv", rows[::-1]))
    )
    forward, backward = (
        desk.json(AGGREGATE, path, "--json", "--measure", "sum:v") for path in paths
    )
    assert forward == backward
    assert forward["rows"] == [{"sum:v": 4}]


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", ["bar", "line", "histogram", "scatter"])
def test_a_chart_is_an_svg_with_escaped_text(desk: Desk, kind: str) -> None:
    evil = '</text><script>alert("1")</script>'
    rows = "".join(f"{name},{x},{x * 2}\n" for name, x in [(f'"{evil[:20]}&"', 5), ("b", -3)])
    path = desk.upload("c.csv", "name,x,y\n" + rows)
    axes = {
        "bar": ["--x", "name", "--y", "sum:x", "--y", "max:y"],
        "line": ["--x", "name", "--y", "mean:x"],
        "histogram": ["--x", "x", "--bins", "4"],
        "scatter": ["--x", "x", "--y", "y"],
    }[kind]
    call = [path, "--kind", kind, *axes, "--title", evil, "--output"]
    for name in ("one.svg", "two.svg"):
        done = desk.script(CHART, *call, f"/sandbox/outputs/{name}")
        assert done.exit_code == 0, done.stderr
    assert desk.output("one.svg") == desk.output("two.svg"), "the same data, the same bytes"
    root = ET.fromstring(desk.output("one.svg"))
    assert root.findtext("{*}title") == evil
    assert root.findtext("{*}desc")
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    shape = {"bar": "rect", "histogram": "rect"}.get(kind, "circle")
    assert len(list(root.iter(f"{{http://www.w3.org/2000/svg}}{shape}"))) >= 2
    for element in root.iter():
        for key in ("x", "y", "cx", "cy"):
            assert -1 <= float(element.get(key, 0)) <= 900


def test_a_png_without_matplotlib_is_refused_with_its_own_code(desk: Desk) -> None:
    path = desk.upload("sales.csv", SALES)
    done = desk.script(
        CHART, path, "--kind", "bar", "--x", "region", "--output", "/sandbox/outputs/a.png"
    )
    assert done.exit_code == 6
    assert ".svg" in done.stderr


def test_a_cleaned_file_has_every_row_and_no_surprise(desk: Desk) -> None:
    path = desk.upload("umsatz.csv", GERMAN.encode("cp1252"))
    done = desk.script(CLEAN, path, "--typed", "--output", "/sandbox/outputs/clean.csv")
    assert done.exit_code == 0
    assert desk.output("clean.csv") == (
        "Region,Datum,Betrag,Kürzel\nNord,2024-04-03,1234.5,007\nSüd,2024-04-04,2.5,008\n"
        '"Ost\nneu",2024-04-05,,009\nWest,2024-04-06,-10.25,\nWest,2024-04-07,0.75,010\n'
    )


@pytest.mark.slow
def test_a_large_file_is_read_in_little_memory(desk: Desk) -> None:
    """6 MB with an address space of 60 MB: all rows must never be in memory together."""
    make = (
        "with open('big.csv', 'w') as out:\n    out.write('id,name,amount\\n')\n"
        "    block = ''.join(f'{i},customer number {i},{i % 97}.5\\n' for i in range(2000))\n"
        "    for _ in range(100): out.write(block)\n"
    )
    assert desk.box.execute_python(make).exit_code == 0
    done = desk.run(
        "ulimit -v 60000; python3 /sandbox/skills/csv-analytics/scripts/aggregate_csv.py big.csv "
        "--measure sum:amount --measure count --json"
    )
    assert '"count": 200000' in done.stdout, done.stderr


@pytest.mark.slow
def test_real_data_give_the_same_figures_with_and_without_pandas(
    desk: Desk, equipped_desk: Desk
) -> None:
    content = data_bytes()
    plain = desk.json(PROFILE, desk.upload("w.csv", content), "--json")
    path = equipped_desk.upload("w.csv", content)
    equipped = equipped_desk.json(PROFILE, path, "--json")
    assert plain.pop("packages") == []
    assert {"pandas", "matplotlib"} <= set(equipped.pop("packages"))
    assert plain == equipped
    by_pandas = equipped_desk.box.execute_python(
        f"import json, pandas as pd\nt = pd.read_csv({path!r}, **{plain['pandas_read_csv']!r})\n"
        "print(json.dumps([t.precipitation.sum(), t.precipitation.std(), *t.temp_max.quantile("
        "[.25, .5, .75])]))"
    )
    rain, hot = columns(plain)["precipitation"], columns(plain)["temp_max"]
    mine = [rain["sum"], rain["standard_deviation"]]
    mine += [hot[key] for key in ("quartile_1", "median", "quartile_3")]
    assert json.loads(by_pandas.stdout) == pytest.approx(mine)


@pytest.mark.slow
def test_a_png_comes_from_matplotlib_and_the_output_names_it(equipped_desk: Desk) -> None:
    path = equipped_desk.upload("sales.csv", SALES)
    done = equipped_desk.script(
        CHART, path, "--kind", "bar", "--x", "region", "--y", "sum:amount", "--title", "$x$ & y",
        "--output", "/sandbox/outputs/a.png",
    )  # fmt: skip
    assert "drawn with matplotlib" in done.stderr
    picture = (equipped_desk.workspace.directories["outputs"] / "a.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000
