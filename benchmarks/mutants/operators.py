"""The small changes that can be made to a module, each a piece of its text replaced by another."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_TWINS = (
    ("min", "max"), ("any", "all"), ("startswith", "endswith"), ("removeprefix", "removesuffix"),
    ("partition", "rpartition"), ("lower", "upper"), ("lstrip", "rstrip"),
    ("find", "rfind"), ("search", "match"),
)  # fmt: skip
_TWIN = {name: twin for a, b in _TWINS for name, twin in ((a, b), (b, a))} | {"fullmatch": "match"}
_DISPENSABLE = frozenset({"sorted", "reversed", "strip", "rstrip", "lstrip", "lower"})
"""Calls that can be left out: what they are given is of the kind that they return."""
_AS_BY_DEFAULT = frozenset({"encoding", "check"})
"""Arguments that only say what is so without them as well: UTF-8, and no exception of subprocess."""


@dataclass(frozen=True)
class Mutant:
    """One small change of one file.

    Args:
        path: the file, relative to the root of the tree.
        line: where the changed statement begins.
        end: where it ends; of a statement with a body only its head counts.
        top: whether it is carried out when the module is imported.
        operator: the kind of change.
        start: the first character that is replaced.
        stop: the character after the last one that is replaced.
        text: what stands there instead.
        before: the lines that change, as they are.
        after: the same lines with the change.
    """

    path: str
    line: int
    end: int
    top: bool
    operator: str
    start: int
    stop: int
    text: str
    before: str
    after: str

    def apply(self, source: str) -> str:
        """Return the file's text with the change made."""
        return source[: self.start] + self.text + source[self.stop :]

    @property
    def key(self) -> str:
        """What stays the same while other lines of the file change."""
        return "|".join((self.path, self.operator, self.before, self.after))


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Return every mutant of a module.

    Docstrings, annotations, decorators, assertions and ``__all__`` stay as they are.
    """
    walk = _SyntaxWalk(path, source)
    walk.statements(ast.parse(source).body, top=True)
    return walk.mutants


class _SyntaxWalk:
    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.mutants: list[Mutant] = []
        lines = source.splitlines(keepends=True)
        self._encoded = [line.encode() for line in lines]
        self._starts = [0, *accumulate(len(line) for line in lines)]
        self._statement: tuple[int, int, bool] = (0, 0, False)

    def statements(self, body: list[ast.stmt], *, top: bool) -> None:
        for node in body:
            if _stays(node):
                continue
            self.statement(node, top=top)
            inner = top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for name in ("body", "orelse", "finalbody"):
                self.statements(getattr(node, name, []), top=inner)
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                self.statements(part.body, top=inner)

    def statement(self, node: ast.stmt, *, top: bool) -> None:
        """Add the mutants of one statement; of one with a body, those of its head."""
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        self._statement = (node.lineno, max(node.lineno, end), top)
        for operator, text in _of_statement(node):
            self.add(node, operator, text)
        if isinstance(node, (ast.If, ast.While)):
            self.add(node.test, "never", "False")
        if isinstance(node, ast.If):
            self.add(node.test, "always", "True")
        for expression in _head(node):
            self.expression(expression)

    def expression(self, node: ast.AST, inside: ast.JoinedStr | None = None) -> None:
        """Add the mutants of an expression and of its parts.

        Args:
            node: the expression.
            inside: the f-string around it: only that has a known place in the text (before Python 3.12).
        """
        if isinstance(node, ast.expr):
            for operator, changed in _of_expression(node):
                if inside is None:
                    self.add(node, operator, f"({ast.unparse(changed)})")
                elif not isinstance(node, ast.JoinedStr):
                    self.add(inside, operator, _unparsed(_substituted(inside, node, changed)))
        if isinstance(node, ast.JoinedStr) and inside is None:
            inside = node
        for child in _parts(node):
            self.expression(child, inside)

    def add(self, node: ast.expr | ast.stmt, operator: str, text: str) -> None:
        if not text:
            return
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start, stop = self._at(node.lineno, node.col_offset), self._at(last, column)
        first, after = self._starts[node.lineno - 1], self._starts[last]
        before = self.source[first:after]
        changed = self.source[first:start] + text + self.source[stop:after]
        self.mutants.append(
            Mutant(
                self.path,
                *self._statement,
                operator,
                start,
                stop,
                text,
                _flat(before),
                _flat(changed),
            )
        )

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._encoded[line - 1][:column].decode())


def _flat(lines: str) -> str:
    return " ".join(lines.split())


# --- where to look -----------------------------------------------------------------------------------------


def _stays(node: ast.stmt) -> bool:
    """Return whether a statement is none that behaviour depends on."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.Pass)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    if isinstance(node, ast.AnnAssign):
        return node.value is None or "TypeAlias" in ast.unparse(node.annotation)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__" or "TypeVar(" in ast.unparse(node.value)
    return False


def _head(node: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a statement that are not in its body, without annotations and decorators."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [value for value in (*node.args.defaults, *node.args.kw_defaults) if value]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in node.items]
    names = ("test", "iter", "subject", "value", "exc")
    values = [getattr(node, name, None) for name in names]
    return [] if isinstance(node, ast.ClassDef) else [x for x in values if isinstance(x, ast.expr)]


def _parts(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, ast.comprehension):
        return [node.iter, *node.ifs]
    if isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and _is_cast(node)):
        return [node.value] if isinstance(node, ast.Attribute) else [node.args[-1]]
    return list(ast.iter_child_nodes(node))


def _is_cast(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "cast"


def _substituted(tree: Any, old: ast.AST, new: ast.AST) -> Any:
    """Return a copy of a tree with one node replaced."""
    if tree is old:
        return new
    if isinstance(tree, list):
        return [_substituted(item, old, new) for item in tree]
    if not isinstance(tree, ast.AST):
        return tree
    twin = copy.copy(tree)
    for name, value in ast.iter_fields(tree):
        setattr(twin, name, _substituted(value, old, new))
    return twin


def _unparsed(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except ValueError:  # what an f-string of this Python cannot hold
        return ""


# --- what to change ----------------------------------------------------------------------------------------


def _of_statement(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return None", "return None"
    elif isinstance(node, (ast.Expr, ast.AugAssign, ast.Raise)) or _fills(node):
        yield "statement out", "pass"
    elif isinstance(node, ast.Continue):
        yield "continue -> break", "break"
    elif isinstance(node, ast.Break):
        yield "break -> continue", "continue"
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield "arithmetic", ast.unparse(_with(node, op=_ARITHMETIC[type(node.op)]()))


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.JoinedStr):
        yield "text", ast.Constant("")
    elif isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for replacement in _COMPARISONS[type(operator)]:
                yield "comparison", _with(node, ops=_changed(node.ops, at, replacement()))
    elif isinstance(node, ast.BoolOp):
        yield "and <-> or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for at in range(len(node.values)):
            rest = _without(node.values, at)
            yield "operand out", _with(node, values=rest) if len(rest) > 1 else rest[0]
    elif isinstance(node, ast.UnaryOp):
        yield "sign or not out", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if not any(isinstance(x, (ast.JoinedStr, ast.Tuple, ast.List)) for x in _sides(node)):
            yield "arithmetic", _with(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.IfExp):
        yield "always", node.body
        yield "never", node.orelse
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 1:
        for at in range(len(node.elts)):
            yield "element out", _with(node, elts=_without(node.elts, at))
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
        for at, part in enumerate(node.generators):
            for place in range(len(part.ifs)):
                fewer = _with(part, ifs=_without(part.ifs, place))
                yield "filter out", _with(node, generators=_changed(node.generators, at, fewer))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        for name in ("lower", "upper"):
            if getattr(node.slice, name) is not None:
                yield "bound out", _with(node, slice=_with(node.slice, **{name: None}))
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_constant(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield "constant", ast.Constant(value + 1)
        yield "constant", ast.Constant(value - 1)
    elif isinstance(value, str):
        yield "text", ast.Constant("" if value else "mutant")
    elif isinstance(value, bytes):
        yield "text", ast.Constant(b"" if value else b"mutant")


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _TWIN:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        yield "another call", _with(node, func=_with(node.func, **{field: _TWIN[name]}))
    if name in _DISPENSABLE:
        if isinstance(node.func, ast.Attribute):
            yield "call out", node.func.value
        elif len(node.args) == 1:
            yield "call out", node.args[0]
    # With isinstance it would be an error of types, which every test that comes by there sees.
    starred = any(isinstance(x, ast.Starred) for x in node.args[:2])
    if len(node.args) > 1 and not starred and name != "isinstance":
        first, two, *rest = node.args
        if ast.dump(first) != ast.dump(two):
            yield "arguments swapped", _with(node, args=[two, first, *rest])
    for at, keyword in enumerate(node.keywords):
        if keyword.arg in _AS_BY_DEFAULT:
            continue
        yield "argument out", _with(node, keywords=_without(node.keywords, at))


def _fills(node: ast.stmt) -> bool:
    """Return whether a statement assigns to a part of something, which exists without it as well."""
    places = (ast.Attribute, ast.Subscript)
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], places)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _sides(node: ast.BinOp) -> tuple[ast.expr, ast.expr]:
    return node.left, node.right


def _with(node: Any, **changes: Any) -> Any:
    twin = copy.copy(node)
    for name, value in changes.items():
        setattr(twin, name, value)
    return twin


def _changed(items: list[Any], at: int, new: Any) -> list[Any]:
    return [*items[:at], new, *items[at + 1 :]]


def _without(items: list[Any], at: int) -> list[Any]:
    return [*items[:at], *items[at + 1 :]]
