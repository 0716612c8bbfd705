r"""
Write tests/data/roster.csv: 250 made-up people to invite, with the dirt real rosters have.

Run `python dev/make_roster.py`; it writes the same bytes each time.

    rows  what they are
    ----  ---------------------------------------------------------------------------------------------
     229  people to invite, each once; among them
            1  who is a member already: grace.analyst@example.com
            1  whose message holds a comma and a line break
            1  whose first name is not ASCII
           12  whose address is in mixed case
       6  the same row as another, character for character
       5  the same person as another, the address in other letter case (3), in blanks (1), in both (1)
       7  no address: without @, with two @, a blank inside, a domain ending in a dot, empty,
          a comma for a dot, no domain
       3  no level: "boss", "-", "1.5"
    ----
     250  rows, and 232 different addresses that are valid (229, and 3 whose level is not)
"""

import csv
import random
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).resolve().parent.parent / "tests" / "data" / "roster.csv"
DOMAINS = ("example.com", "example.com", "example.org", "example.net")
FIRST = tuple(a + b for a in ("Al", "Bren", "Cor", "Dal", "El", "Fen", "Jor") for b in ("a", "en", "is", "o"))
LAST = tuple(a + b for a in ("bark", "dorn", "holt", "mar", "wes") for b in ("elin", "ovic", "sted", "une"))
MESSAGES = ("", "", "Welcome aboard.", "Your team is already here.", "See you on Monday.")
BAD_ADDRESSES = (
    "{name}.example.com",
    "{name}@home@example.com",
    "{name} x@example.com",
    "{name}@example.com.",
    "",
    "{name}@example,com",
    "{name}@",
)
BAD_LEVELS = ("boss", "-", "1.5")


class Row(NamedTuple):
    """One line of the roster."""

    email: str
    first_name: str
    level: str
    message: str


def roster() -> list[Row]:
    """Return the rows below the header."""
    rng = random.Random(250)  # noqa: S311 (made-up names, no secrets)
    names = [(first, last) for first in FIRST for last in LAST]
    rng.shuffle(names)

    def person(address: str = "{name}@{domain}", level: str = "") -> Row:
        first, last = names.pop()
        email = address.format(name=f"{first}.{last}".lower(), domain=rng.choice(DOMAINS))
        return Row(email, first, level or rng.choice("1118"), rng.choice(MESSAGES))

    plain = [person() for _ in range(214)]
    special = [
        Row("grace.analyst@example.com", "Grace", "1", "Welcome aboard."),
        Row("ines.holtune@example.org", "Ines", "8", "Welcome, Ines!\nYour desk is on the second floor."),
        Row("zofie.marsted@example.net", "Žofie", "1", ""),
    ]
    mixed = [row._replace(email=row.email.title()) for row in (person() for _ in range(12))]
    again = [
        *plain[:6],
        *(row._replace(email=row.email.upper()) for row in plain[6:9]),
        plain[9]._replace(email=f"  {plain[9].email} "),
        plain[10]._replace(email=f" {plain[10].email.title()}"),
    ]
    bad = [*(person(address) for address in BAD_ADDRESSES), *(person(level=level) for level in BAD_LEVELS)]

    rows = [*plain, *special, *mixed, *again, *bad]
    rng.shuffle(rows)
    return rows


def main() -> None:
    """Write the file."""
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(rows := roster())
    print(f"{len(rows)} rows: {TARGET}")


if __name__ == "__main__":
    main()
