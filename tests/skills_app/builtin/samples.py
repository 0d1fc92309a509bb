"""The files that the examples of the skills use, as an agent would find them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.skills_app.builtin.desk import Desk
from tests.skills_app.builtin.pdfs import form, invoice

SALES = """\
order,ordered_on,region,product,amount
1001,2024-01-05,North,wire,120.50
1002,2024-01-19,South,clamp,36.5
1003,2024-02-02,North,clamp,9
1004,2024-02-11,West,wire,n/a
1005,2024-03-07,South,"wire, thick",1240
1006,2024-03-30,North,wire,80.25
"""
REGIONS = "region,manager\nNorth,Ann\nSouth,Bo\n"
REPORT = "Field report\n\nOutput rose by 12 per cent\nafter the new line was installed.\n"
_SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, region TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
  ordered_on TEXT, amount REAL, status TEXT DEFAULT 'open');
CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid';
INSERT INTO customers VALUES (1, 'Ann | Co', 'North'), (2, 'Bo', 'South'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, '2024-01-05', 100.5, 'paid'), (2, 1, '2024-02-05', 50, 'open'),
  (3, 2, '2024-02-07', 20.25, 'paid'), (4, 2, '2024-03-01', NULL, 'open');
"""


def make_shop(path: Path) -> bytes:
    connection = sqlite3.connect(path)
    connection.executescript(_SHOP)
    connection.close()
    return path.read_bytes()


def fill(desk: Desk, tmp_path: Path) -> None:
    """Upload all files that the instructions of the six skills use."""
    desk.upload("sales.csv", SALES)
    desk.upload("regions.csv", REGIONS)
    desk.upload("field-report.txt", REPORT)
    desk.upload("shop.db", make_shop(tmp_path / "shop.db"))
    desk.upload("invoice.pdf", invoice())
    desk.upload("form.pdf", form())
