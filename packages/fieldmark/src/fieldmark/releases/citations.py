"""Entries of BibTeX for the papers that present releases. What no source states is left out."""

from __future__ import annotations

# The volumes of the working notes among the CEUR Workshop Proceedings.
VOLUMES = {2020: 2696, 2021: 2936, 2022: 3180, 2023: 3497, 2024: 3740, 2025: 4038}


def bibtex(kind: str, key: str, **fields: str) -> str:
    """An entry; empty fields are left out.

    >>> print(bibtex("misc", "a2020b", title="A title", year="2020", doi=""))
    @misc{a2020b,
      title = {A title},
      year = {2020},
    }
    """
    lines = (f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@{kind}{{{key},\n{''.join(lines)}}}"


def working_note(key: str, title: str, author: str, year: int, *, paper: str = "", pages: str = "") -> str:
    """A paper in the working notes of CLEF; `paper` is its file name there."""
    volume = VOLUMES[year]
    return bibtex(
        "inproceedings",
        key,
        title=title,
        author=author,
        booktitle=f"Working Notes of CLEF {year} - Conference and Labs of the Evaluation Forum",
        series="CEUR Workshop Proceedings",
        volume=str(volume),
        pages=pages,
        year=str(year),
        url=f"https://ceur-ws.org/Vol-{volume}/{paper}.pdf" if paper else f"https://ceur-ws.org/Vol-{volume}/",
    )


def preprint(key: str, title: str, author: str, year: int, number: str) -> str:
    """A paper on arXiv."""
    return bibtex(
        "article",
        key,
        title=title,
        author=author,
        journal=f"arXiv preprint arXiv:{number}",
        year=str(year),
        url=f"https://arxiv.org/abs/{number}",
    )


LIFECLEF_2020 = bibtex(
    "inproceedings",
    "joly2020lifeclef",
    title="Overview of LifeCLEF 2020: A System-Oriented Evaluation of Automated Species Identification and Species "
    "Distribution Prediction",
    author="Joly, Alexis and Goëau, Hervé and Kahl, Stefan and Deneu, Benjamin and Servajean, Maximilien and Cole, "
    "Elijah and Picek, Lukáš and Ruiz de Castañeda, Rafael and Bolon, Isabelle and Durso, Andrew and Lorieul, Titouan "
    "and Botella, Christophe and Glotin, Hervé and Champ, Julien and Eggel, Ivan and Vellinga, Willem-Pier and Bonnet, "
    "Pierre and Müller, Henning",
    booktitle="Experimental IR Meets Multilinguality, Multimodality, and Interaction (CLEF 2020)",
    pages="342--363",
    year="2020",
    doi="10.1007/978-3-030-58219-7_23",
)
LIFECLEF_2021 = bibtex(
    "inproceedings",
    "joly2021lifeclef",
    title="Overview of LifeCLEF 2021: An Evaluation of Machine-Learning Based Species Identification and Species "
    "Distribution Prediction",
    author="Joly, Alexis and others",
    booktitle="Experimental IR Meets Multilinguality, Multimodality, and Interaction (CLEF 2021)",
    year="2021",
    doi="10.1007/978-3-030-85251-1_24",
)
LIFECLEF_2022 = bibtex(
    "inproceedings",
    "joly2022lifeclef",
    title="Overview of LifeCLEF 2022: An Evaluation of Machine-Learning Based Species Identification and Species "
    "Distribution Prediction",
    author="Joly, Alexis and others",
    year="2022",
    url="https://hal.inrae.fr/hal-03807746",
)
