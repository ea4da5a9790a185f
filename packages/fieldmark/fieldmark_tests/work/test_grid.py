from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.files import write_text
from fieldmark.work.grid import GridCell, address_of, run_grid


def cells(folder: Path, numbers=range(6), shares=lambda number: None) -> list[GridCell[int]]:
    return [GridCell(folder / f"{number}.txt", number, shares(number)) for number in numbers]


def squared(number: int) -> str:
    if number == 4:
        raise InputError("four", found="a four", expected="any other number")
    return str(number * number)


def kept(path: Path, text: str) -> None:
    write_text(path, text)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_cell_that_is_refused_is_reported_and_the_others_are_made(tmp_path, processes):
    outcomes = list(run_grid("squares", cells(tmp_path), squared, kept, processes=processes, keep_going=True))
    assert [one.state for one in outcomes] == ["made"] * 4 + ["failed", "made"]
    assert isinstance(outcomes[4].problem, InputError) and "a four" in str(outcomes[4].problem)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.txt", "1.txt", "2.txt", "3.txt", "5.txt"]


def test_what_was_made_before_an_end_is_not_made_again(tmp_path):
    class Killed(BaseException):
        pass

    made: list[int] = []

    def make(number: int) -> str:
        if len(made) in (2, 4) and made[-1] != number:
            made.append(-1)  # killed here, twice
            raise Killed
        made.append(number)
        return str(number)

    for _ in range(2):
        with pytest.raises(Killed):
            list(run_grid("numbers", cells(tmp_path), make, kept))
    states = [one.state for one in run_grid("numbers", cells(tmp_path), str, kept)]
    assert states.count("stored") == len([number for number in made if number >= 0])
    assert [(tmp_path / f"{number}.txt").read_text() for number in range(6)] == list("012345")


def test_without_keep_going_the_refusal_of_a_cell_is_raised(tmp_path):
    with pytest.raises(InputError, match="a four"):
        list(run_grid("squares", cells(tmp_path), squared, kept))


def test_of_cells_that_share_something_one_goes_first(tmp_path):
    order = []
    list(run_grid("numbers", cells(tmp_path, shares=lambda number: number % 2), order.append))
    assert order == [0, 1, 2, 3, 4, 5]
    order.clear()
    list(run_grid("numbers", cells(tmp_path, shares=lambda number: number // 3), order.append))
    assert order == [0, 3, 1, 2, 4, 5]


def test_the_address_of_a_cell_changes_with_its_content_alone():
    content = {"benchmark": "folder@2", "settings": {"l2": 0.1}}
    assert address_of(content) == address_of(dict(reversed(content.items())))
    assert address_of(content) != address_of({**content, "settings": {"l2": 0.2}})


def test_a_misuse_stays_a_misuse(tmp_path):
    def make(number: int) -> None:
        raise MisuseError("no such thing")

    outcome = next(run_grid("numbers", cells(tmp_path), make, keep_going=True))
    assert outcome.problem is not None and outcome.problem.exit_code == 2
