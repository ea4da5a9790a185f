"""Where one token of a source file can be changed so that the program says something else.

Comparisons, arithmetic, numbers, truth values, `and` and `or`, `not` and signs, names with an opposite (`min` and
`max`), `break` and `continue`. Left alone: strings and everything inside f-strings, annotations and aliases of types,
decorators, and what only words an error (`raise`, `problems.add`).
"""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

OPPOSITES = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "is": ("is not",), "is not": ("is",), "in": ("not in",), "not in": ("in",), "and": ("or",), "or": ("and",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "//": ("*",), "%": ("//",), "**": ("*",),
    "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",), "//=": ("*=",), "|=": ("&=",), "&=": ("|=",),
    "&": ("|",), "|": ("&",), "<<": (">>",), ">>": ("<<",), "break": ("continue",), "continue": ("break",),
    "min": ("max",), "max": ("min",), "minimum": ("maximum",), "maximum": ("minimum",), "any": ("all",),
    "all": ("any",), "argmin": ("argmax",), "argmax": ("argmin",), "floor": ("ceil",), "ceil": ("floor",),
    "zeros": ("ones",), "ones": ("zeros",), "True": ("False",), "False": ("True",),
}  # fmt: skip
_BETWEEN = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
Place = tuple[int, int]


@dataclass(frozen=True)
class Site:
    """A token that can be changed, with what may stand in its place."""

    path: str
    line: int
    start: int
    end: int
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Mutation:
    """One change: the line before and after it, without indentation. They and the path stay when lines move.

    Args:
        path: The file, relative to the folder of the sources.
        line: The number of the line, from 1 on.
        text: The line.
        becomes: The line with the change.
        source: The whole file with the change.
    """

    path: str
    line: int
    text: str
    becomes: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the mutation in results and tables."""
        return self.path, self.text, self.becomes


def sites_in(path: str, source: str) -> list[Site]:
    """Every token of a file that can be changed, in order.

    >>> [site.choices for site in sites_in("a.py", "def f(x: int = 3) -> int: return x + max(x, 0)")]
    [('4',), ('-',), ('min',), ('1',)]
    """
    lines = source.splitlines()
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in _BETWEEN]

    def place(line: int, column: int) -> Place:
        return line, len(lines[line - 1].encode()[:column].decode())  # the syntax tree counts bytes

    def between(start: Place, end: Place) -> list[tokenize.TokenInfo]:
        return [token for token in tokens if start <= token.start and token.end <= end and token.string not in "()"]

    sites = []
    for node in _changeable(ast.parse(source)):
        for first, last in _spans(node):
            words = between(place(*first), place(*last))
            choices = _choices(node, " ".join(word.string for word in words))
            if choices and words[0].start[0] == words[-1].end[0]:
                (line, start), (_, end) = words[0].start, words[-1].end
                sites.append(Site(path, line, start, end, choices))
    return sorted(sites, key=lambda site: (site.line, site.start))


def drawn(root: Path, files: Sequence[Path], number: int, seed: int) -> tuple[list[Mutation], int]:
    """So many mutations drawn at random from all files, each of another token; and how many tokens there are."""
    sources = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(files)}
    sites = [site for path, source in sources.items() for site in sites_in(path, source)]
    rng = random.Random(seed)
    chosen = [_mutation(site, sources[site.path], rng.choice(site.choices)) for site in rng.sample(sites, number)]
    return chosen, len(sites)


def _mutation(site: Site, source: str, word: str) -> Mutation:
    lines = source.splitlines(keepends=True)
    old = lines[site.line - 1]
    new = old[: site.start] + word + old[site.end :]
    lines[site.line - 1] = new
    changed = "".join(lines)
    ast.parse(changed)  # a change that is no Python any more would be no mutation but a mistake here
    return Mutation(site.path, site.line, old.strip(), new.strip(), changed)


def _changeable(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, less what is left alone."""
    if isinstance(node, ast.Raise | ast.JoinedStr) or _is_alias(node) or _words_a_problem(node):
        return
    yield node
    for name, below in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in below if isinstance(below, list) else [below]:
            if isinstance(child, ast.AST):
                yield from _changeable(child)


def _is_alias(node: ast.AST) -> bool:
    """Whether a type gets another name: `Values = NDArray[np.float64]`, `Source = Path | str`."""
    if not isinstance(node, ast.Assign) or node.col_offset:
        return False
    return isinstance(node.value, ast.Subscript) or (
        isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
    )


def _words_a_problem(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "problems.add"


def _spans(node: ast.AST) -> Iterator[tuple[Place, Place]]:
    """From where to where the tokens lie that a node can have changed; the columns in bytes."""
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            yield from ((_end(a), _start(b)) for a, b in pairwise(sides))
        case ast.BoolOp(values=sides):
            yield from ((_end(a), _start(b)) for a, b in pairwise(sides))
        case ast.BinOp(left=left, right=right) if not any(map(_is_text, (left, right))):
            yield _end(left), _start(right)
        case ast.AugAssign(target=left, value=right):
            yield _end(left), _start(right)
        case ast.UnaryOp(operand=operand):
            yield _start(node), _start(operand)
        case ast.Attribute(attr=name):
            line, column = _end(node)
            yield (line, column - len(name.encode())), (line, column)
        case ast.Constant() | ast.Name() | ast.Break() | ast.Continue():
            yield _start(node), _end(node)


def _choices(node: ast.AST, word: str) -> tuple[str, ...]:
    """What may stand in place of a word; nothing where it is left alone."""
    if isinstance(node, ast.UnaryOp):
        return ("",)
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return OPPOSITES.get(word, ())
    if isinstance(node.value, int):
        return {0: ("1",), 1: ("0", "2")}.get(node.value, (str(node.value + 1),))
    if isinstance(node.value, float):
        return {0.0: ("1.0",), 1.0: ("0.0", "2.0")}.get(node.value, (repr(2 * node.value),))
    return ()


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _start(node: ast.AST) -> Place:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> Place:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
