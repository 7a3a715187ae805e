"""Stores of the stub: keys and values that ranks share, over TCP or in a file."""

from __future__ import annotations

import fcntl
import json
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

Values = dict[str, Any]
DEFAULT = timedelta(seconds=60)


class DistStoreError(RuntimeError):
    """A key did not come in time, or the store has gone."""


def perform(values: Values, request: dict[str, Any]) -> Any:
    """Carry out a request at the values; None where what it asks for is not there yet."""
    key = request.get("key", "")
    if request["do"] == "set":
        values[key] = request["value"]
        return True
    if request["do"] == "add":
        values[key] = int(values.get(key, 0)) + request["value"]
        return values[key]
    if request["do"] == "wait":
        return all(key in values for key in request["keys"]) or None
    return values.get(key)


class Store:
    """What every store can do."""

    def ask(self, request: dict[str, Any], limit: timedelta) -> Any:
        """Send a request, and wait for its answer."""
        raise NotImplementedError

    def set(self, key: str, value: str) -> None:
        """Set a key."""
        self.ask({"do": "set", "key": key, "value": value}, DEFAULT)

    def get(self, key: str) -> str:
        """Wait for a key; return its value."""
        return str(self.ask({"do": "get", "key": key}, DEFAULT))

    def add(self, key: str, more: int) -> int:
        """Add to a counter; return what it is then."""
        return int(self.ask({"do": "add", "key": key, "value": more}, DEFAULT))

    def wait(self, keys: list[str], limit: timedelta = DEFAULT) -> None:
        """Wait for all these keys."""
        self.ask({"do": "wait", "keys": keys}, limit)


class PrefixStore(Store):
    """A store whose keys begin with a word."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.store = prefix, store

    def ask(self, request: dict[str, Any], limit: timedelta) -> Any:
        """Ask the store below."""
        whole = dict(request)
        if "key" in whole:
            whole["key"] = f"{self.prefix}/{whole['key']}"
        if "keys" in whole:
            whole["keys"] = [f"{self.prefix}/{key}" for key in whole["keys"]]
        return self.store.ask(whole, limit)

    def own_address(self) -> str:
        """Return the address of this host, as the store's host sees it."""
        return own_address(self.store)


class FileStore(Store):
    """A store in a file, for the ranks of one host."""

    def __init__(self, path: str, count: int) -> None:  # noqa: ARG002  (as torch's)
        self.path = Path(path)

    def ask(self, request: dict[str, Any], limit: timedelta) -> Any:
        """Look into the file until it has the answer."""
        end = time.monotonic() + limit.total_seconds()
        while True:
            with self.path.open("a+", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(0)
                values = json.loads(file.read() or "{}")
                answer = perform(values, request)
                file.truncate(0)
                file.write(json.dumps(values))
            if answer is not None:
                return answer
            if time.monotonic() > end:
                raise DistStoreError(f"wait timeout after {limit}, keys: {request}")
            time.sleep(0.02)


class TCPStore(Store):
    """A store over TCP: one process has the values, and all others a connection to it.

    Args:
        host, port: where it is.
        is_master: whether this process is the one.
        timeout: how long to try to connect.
    """

    def __init__(
        self,
        host: str,
        port: int,
        is_master: bool = False,
        timeout: timedelta = DEFAULT,
        wait_for_workers: bool = False,  # noqa: ARG002  (as torch's)
    ) -> None:
        self.values: Values = {}
        self.changed = threading.Condition()
        self.turn = threading.Lock()
        if is_master:
            listener = socket.create_server(("", port))
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            host = "127.0.0.1"
        self.link = connect(host, port, timeout)
        self.file = self.link.makefile("rb")

    def _accept(self, listener: socket.socket) -> None:
        while True:
            link, _ = listener.accept()
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, link.makefile("rb") as requests:
            for line in requests:
                request = json.loads(line)
                with self.changed:
                    answer = self._answer(request)
                    self.changed.notify_all()
                link.sendall(json.dumps(answer).encode("ascii") + b"\n")

    def _answer(self, request: dict[str, Any]) -> Any:
        end = time.monotonic() + request["seconds"]
        while True:
            answer = perform(self.values, request)
            remaining = end - time.monotonic()
            if answer is not None or remaining <= 0:
                return answer
            self.changed.wait(remaining)

    def ask(self, request: dict[str, Any], limit: timedelta) -> Any:
        """Send a line of JSON, and read one."""
        text = json.dumps({**request, "seconds": limit.total_seconds()})
        with self.turn:
            self.link.sendall(text.encode("ascii") + b"\n")
            line = self.file.readline()
        if not line:
            raise DistStoreError("Connection reset by peer: the store has gone")
        answer = json.loads(line)
        if answer is None:
            raise DistStoreError(f"wait timeout after {limit}, keys: {request}")
        return answer


def connect(host: str, port: int, timeout: timedelta) -> socket.socket:
    """Connect to a port that may not be open yet."""
    end = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            link = socket.create_connection((host, port), max(0.1, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() > end:
                place = f"({host}, {port})"
                raise DistStoreError(
                    f"The client socket has timed out after {timeout} while trying to connect to {place}."
                ) from error
            time.sleep(0.1)
            continue
        link.settimeout(None)
        return link


def own_address(store: Store) -> str:
    """Return the address of this host, by which others of the store's users reach it."""
    if isinstance(store, PrefixStore):
        return store.own_address()
    return str(store.link.getsockname()[0]) if isinstance(store, TCPStore) else "127.0.0.1"
