"""The relay as a child of this process: what goes there and comes back, without holding anything else up."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import gevent
from gevent.lock import BoundedSemaphore
from gevent.os import make_nonblocking, nb_read, nb_write

import remedy
from remedy.transport.gateways.wire import (
    EventReader,
    TreeEvent,
    TreeRequest,
    TreeSettings,
    pack_request,
    pack_settings,
    pack_stop,
)

# This remedy, and nothing of the folder that a user happens to be in.
_PROGRAM = """\
import sys
sys.path[:] = [sys.argv[1], *(path for path in sys.path if path)]
import remedy
sys.path.remove(sys.argv.pop(1))
from remedy.transport.gateways.relay import main
main()
"""
_CHUNK = 1 << 18
PIPE = 1 << 20
"""Bytes on their way from a relay; Linux gives so many to whoever asks (pipe(7))."""
_WORDS = 2_000
_PATIENCE = 5.0
# Every so many events others have their turn, however many there are.
_AT_ONCE = 64


class RelayProcess:
    """A relay, started.

    Args:
        settings: for it.
        hear: takes its events.
        on_end: is called once when it has ended, with its last words.
    """

    def __init__(
        self,
        settings: TreeSettings,
        hear: Callable[[TreeEvent], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._hear = hear
        self._on_end = on_end
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        with suppress(OSError):  # an answer at once, and not in pieces for which both sides wake
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, PIPE)
        sources = str(Path(remedy.__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, sources],
            stdin=theirs_in,
            stdout=theirs_out,
            stderr=self._words,
            start_new_session=True,  # Ctrl-C of a terminal is for remedy
        )
        os.close(theirs_in)
        os.close(theirs_out)
        make_nonblocking(self._in)
        make_nonblocking(self._out)
        self._writing = BoundedSemaphore(1)
        self._is_open = True
        self._reader = gevent.spawn(self._read)
        self._send(pack_settings(settings))

    def ask(self, request: TreeRequest) -> None:
        """Ask for a request; what becomes of it is heard."""
        self._send(pack_request(request))

    def stop(self, request: int) -> None:
        """End a request, where it has not ended."""
        self._send(pack_stop(request))

    def _send(self, content: bytes) -> None:
        with self._writing, suppress(OSError):
            remaining = memoryview(content)
            while remaining and self._is_open:
                remaining = remaining[nb_write(self._in, remaining) :]

    def _read(self) -> None:
        reader, count = EventReader(), 0
        reason = ""
        try:
            while chunk := nb_read(self._out, _CHUNK):
                for event in reader.feed(chunk):
                    self._hear(event)
                    count += 1
                    if count % _AT_ONCE == 0:
                        gevent.sleep(0)
        except (OSError, ValueError, TypeError, KeyError) as error:
            reason = str(error)
        self._on_end(reason or self._last_words())

    def _last_words(self) -> str:
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, self._words.tell() - _WORDS))
        lines = self._words.read().decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def close(self) -> None:
        """End the relay, and with it all channels to gateways."""
        if not self._is_open:
            return
        self._is_open = False
        self._reader.kill()
        os.close(self._in)
        os.close(self._out)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._words.close()
