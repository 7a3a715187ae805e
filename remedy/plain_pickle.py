"""A decoder of pickles that hold plain values only: it can import nothing and call nothing.

torch's flight recorder writes pickles (torch/csrc/distributed/c10d/FlightRecorder.hpp), and so do gateways of
ClusterShell (``ClusterShell.Communication``). A pickle is a program, and Python's own loader runs it; here its
opcodes are read one by one, and any that would name a class or a function ends the reading.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

MOST = 4_000_000
"""Opcodes of a pickle; a dump of a recorder with 20,000 entries has half of that."""

_MARK = object()
_VALUES = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
        *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))


class PlainPickleError(ValueError):
    """A pickle is broken, or too long, or holds more than plain values."""


def loads(data: bytes, most: int = MOST) -> Any:
    """Return the value of a pickle of numbers, texts, bytes, lists, tuples and dictionaries.

    Args:
        data: the pickle.
        most: opcodes that it may have.

    Raises:
        PlainPickleError: it holds anything else, or is broken.
    """
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count >= most:
                raise PlainPickleError("the pickle has too many values")
            if opcode.name == "STOP":
                return machine.stack[-1]
            machine.do(opcode.name, argument)
    except PlainPickleError:
        raise
    except (
        *(ValueError, TypeError, IndexError, KeyError, AttributeError),
        *(OverflowError, RecursionError),
    ) as error:
        raise PlainPickleError(f"the pickle is broken: {error}") from error
    raise PlainPickleError("the pickle breaks off")


class _Machine:
    """The stack and the memory of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.builders: dict[str, Callable[[], None]] = {
            "MARK": lambda: self.stack.append(_MARK),
            "EMPTY_LIST": lambda: self.stack.append([]),
            "EMPTY_DICT": lambda: self.stack.append({}),
            "EMPTY_TUPLE": lambda: self.stack.append(()),
            "LIST": lambda: self.stack.append(self.marked()),
            "TUPLE": lambda: self.stack.append(tuple(self.marked())),
            "DICT": lambda: self.stack.append(_pairs(self.marked())),
            "TUPLE1": lambda: self.stack.append(tuple(self.last(1))),
            "TUPLE2": lambda: self.stack.append(tuple(self.last(2))),
            "TUPLE3": lambda: self.stack.append(tuple(self.last(3))),
            "APPEND": lambda: self.extend(self.last(1)),
            "APPENDS": lambda: self.extend(self.marked()),
            "SETITEM": lambda: self.update(self.last(2)),
            "SETITEMS": lambda: self.update(self.marked()),
            "MEMOIZE": lambda: self.memo.__setitem__(len(self.memo), self.stack[-1]),
            "POP": lambda: self.stack.__delitem__(-1),
            "PROTO": lambda: None,
            "FRAME": lambda: None,
        }

    def do(self, name: str, argument: Any) -> None:
        """Do what one opcode says.

        Raises:
            PlainPickleError: it is none of plain values.
        """
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _PUTS:
            self.memo[int(argument)] = self.stack[-1]
        elif name in _GETS:
            self.stack.append(self.memo[int(argument)])
        elif name in self.builders:
            self.builders[name]()
        else:
            raise PlainPickleError(
                f"the pickle holds more than plain values ({name}), and is not read"
            )

    def last(self, count: int) -> list[Any]:
        """Take so many values from the stack."""
        values = self.stack[-count:]
        if len(values) < count or any(value is _MARK for value in values):
            raise ValueError("a value is missing")
        del self.stack[-count:]
        return values

    def marked(self) -> list[Any]:
        """Take the values above the last mark, and the mark."""
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                values = self.stack[at + 1 :]
                del self.stack[at:]
                return values
        raise ValueError("a mark is missing")

    def extend(self, values: list[Any]) -> None:
        """Append to the list on top of the stack."""
        top = self.stack[-1]
        if not isinstance(top, list):
            raise TypeError("no list to append to")
        top.extend(values)

    def update(self, values: list[Any]) -> None:
        """Set items of the dictionary on top of the stack."""
        top = self.stack[-1]
        if not isinstance(top, dict):
            raise TypeError("no dictionary to set items of")
        top.update(_pairs(values))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise ValueError("a key has no value")
    # Of tuples within tuples, each twice in the next, the hash alone takes years.
    if not all(isinstance(key, (str, bytes, int)) for key in values[::2]):
        raise TypeError("a key is no text or number")
    return dict(zip(values[::2], values[1::2], strict=True))
