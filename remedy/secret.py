"""Secrets: what looks like one, and the keyed digests that stand for them where others read.

A digest alone gives a short secret away to whoever tries all of them. These need the key, which is made once
for an inventory, lies in ``.remedy`` where only its owner, or its group, reads it, and is in no plan.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import RefusedError, RemedyError
from remedy.files import create_whole, is_shared, kept_mode, make_folder
from remedy.text import quoted

KEY_NAME = "secret.key"
KEY_BYTES = 32

# Some words say it inside of others; some only by themselves: NCCL_IB_PKEY is a partition, PATH no PAT.
_INSIDE = (
    *("SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL"),
    *("APIKEY", "API_KEY", "ACCESSKEY", "ACCESS_KEY", "PRIVATEKEY", "PRIVATE_KEY"),
    # sshpass(1); what Azure and chat programs are called by is a secret as a whole
    *("SSHPASS", "PASSCODE", "CONNECTIONSTRING", "CONNECTION_STRING", "WEBHOOK"),
)
_ALONE = (
    *("KEY", "KEYS", "PAT", "PATS", "PASS", "PWD", "CRED", "CREDS"),
    *("DSN", "AUTH", "JWT", "COOKIE", "SAS", "BEARER"),
)
# signingKey: a capital after a small letter begins a word, too.
_CAPITALS = tuple(word.capitalize() for word in _ALONE)
_OR = r"\|"
# TOKENIZERS_PARALLELISM is none.
_SECRET = re.compile(
    rf"(?i:TOKEN(?!IZ)|{'|'.join(_INSIDE)}|(?:^|[_.-])(?:{'|'.join(_ALONE)})(?:$|[_.-]))"
    rf"|[a-z0-9](?:{'|'.join(_CAPITALS)})(?:$|[A-Z_.-])"
)
_NAME = re.compile(r"[\w.-]+")
_URL_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]+@")


def looks_secret(text: str) -> bool:
    """Say whether a name is about a secret more often than not.

    >>> looks_secret("HF_TOKEN"), looks_secret("WANDB_KEY"), looks_secret("NCCL_SOCKET_IFNAME")
    (True, True, False)
    """
    return _SECRET.search(text) is not None


def shell_pattern() -> str:
    """Return what stands in the shell for ``looks_secret``.

    Returns:
        A basic regular expression, as GNU's and busybox' sed take it, for a whole name of letters, digits and
        ``_.-``. What is around it says where the name begins and ends.
    """
    rest = "[A-Za-z0-9_.-]*"
    inside = _any_of(_INSIDE)
    alone = _any_of(_ALONE)
    no_iz = rf"\([A-HJ-Za-hj-z0-9_.-]{rest}\|[Ii]\|[Ii][A-Ya-y0-9_.-]{rest}\)\{{0,1\}}"
    return (
        rf"\({rest}{_any_of(['TOKEN'])}{no_iz}\|{rest}{inside}{rest}"
        rf"\|\({rest}[_.-]\)\{{0,1\}}{alone}\([_.-]{rest}\)\{{0,1\}}"
        rf"\|{rest}[a-z0-9]\({_OR.join(_CAPITALS)}\)\([A-Z_.-]{rest}\)\{{0,1\}}\)"
    )


def _any_of(words: Iterable[str]) -> str:
    return rf"\({_OR.join(map(_letters, words))}\)"


def _letters(word: str) -> str:
    """Return a word as a pattern of capital and small letters."""
    return "".join(f"[{c}{c.lower()}]" if c.isalpha() else c for c in word)


def shell_hints() -> tuple[str, ...]:
    """Return patterns of the shell: a text with the name of a secret has one of them, others may have, too."""
    anywhere = (_letters(word) for word in ("TOKEN", *_INSIDE))
    ends = (f"{_letters(word)}[!A-Za-z]" for word in _ALONE)
    begins_a_word = (f"[a-z0-9]{word}[A-Z]" for word in _CAPITALS)
    return (*anywhere, *ends, *begins_a_word)


def holds_password(value: str) -> bool:
    """Say whether a value is a URL with a password in it.

    >>> holds_password("postgres://me:word@db/x"), holds_password("http://proxy:3128")
    (True, False)
    """
    return _URL_PASSWORD.search(value) is not None


def may_hold_secret(line: str) -> bool:
    """Say whether a line of a file names a secret, or has a URL with a password.

    >>> may_hold_secret("# export HF_TOKEN=x"), may_hold_secret("10.0.0.1 gpu01")
    (True, False)
    """
    return holds_password(line) or any(map(looks_secret, _NAME.findall(line)))


@dataclass(frozen=True)
class Seal:
    """Keyed digests (HMAC-SHA256).

    Args:
        key: known to nobody else.
    """

    key: bytes

    def __repr__(self) -> str:
        return "Seal(...)"

    @property
    def id(self) -> str:
        """A digest that differs from key to key, and gives nothing else away."""
        return self._digest("key", b"")[:16]

    def of(self, place: str, value: str) -> str:
        """Return what stands for a value; the same value at another place has another digest."""
        return self._digest(place, value.encode())

    def _digest(self, place: str, value: bytes) -> str:
        return hmac.digest(self.key, place.encode() + b"\0" + value, "sha256").hex()


def read_seal(home: Path) -> Seal | None:
    """Return the seal of an inventory; None where it has none.

    Raises:
        RefusedError: others can read its key, or it is not a key.
        RemedyError: it cannot be read.
    """
    path = home / KEY_NAME
    try:
        entry, group = path.stat(), 0o070 if is_shared(home) else 0
        private = "chmod o=" if group else "chmod 600"
        if entry.st_mode & 0o077 & ~group or (group and entry.st_gid != home.stat().st_gid):
            raise RefusedError(
                f"{path} can be read by others than its {'group' if group else 'owner'}",
                next_step=f"Make it private: {private} {quoted(path)}. If it may have been copied, remove it: "
                "a new one is made, and older plans cannot be compared with it.",
            )
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RemedyError(
            f"{path} cannot be read: {error.strerror}",
            next_step="Run the command as the user who owns the folder.",
        ) from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise RefusedError(
            f"{path} is not a key", next_step="Remove it: a new one is made with the next plan."
        )
    return Seal(key)


def make_seal(home: Path) -> Seal:
    """Return the seal of an inventory, made now where it has none.

    Raises:
        RefusedError: as in ``read_seal``.
        RemedyError: it cannot be made.
    """
    path = home / KEY_NAME
    try:
        if not path.exists():
            make_folder(home)
            # Of two that make one at the same time, the first stays.
            with suppress(FileExistsError):
                create_whole(path, secrets.token_hex(KEY_BYTES) + "\n", mode=kept_mode(home))
    except OSError as error:
        raise RemedyError(
            f"the key {path} cannot be made: {error.strerror}",
            next_step="Make room or give write access, and run the command again.",
        ) from error
    seal = read_seal(home)
    assert seal is not None
    return seal
