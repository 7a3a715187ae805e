"""What the system says in other languages, in English: entries and readers know its words in that alone.

The English stands in the place of the translation, and within a line the words of the log behind it in
brackets, so that it can be found by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from remedy.diagnose.scanner.reader import whole
from remedy.yaml_text import parse_own

LARGEST = (
    1 << 20
)  # bytes of a log that are looked at: what is longer is English, or its words are many
# One of them is in every translation that has no other letters than English has.
_HINTS = re.compile(
    rb"[\x80-\xff]{2}|\b(?:nicht|Keine|kein|bereits|offene|refus|introuvable|fichiers?|aucun|archivos?|denegado"
    rb"|rifiutat|negat|recusada|negada|encontrad[oa])"
)


def in_english(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a log with the system's words in English; any other log stays as it is.

    Args:
        blocks: of the log.
    """
    data, all_ = whole(blocks, LARGEST)
    if data is None or not _HINTS.search(data):
        yield from all_
        return
    english, pattern = _translations()

    def replaced(match: re.Match[str]) -> str:
        before = ": " if match["colon"] else ""
        # What ends a line is looked for at its end.
        is_last = text[match.end() : match.end() + 2].strip(" .\r")[:1] in ("", "\n")
        original = "" if is_last else f" [{match['words']}]"
        return f"{before}{english[match['words']]}{original}"

    text = data.decode("utf-8", "surrogateescape")
    yield pattern.sub(replaced, text).encode("utf-8", "surrogateescape")


@cache
def _translations() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Return the English of each translation, and what finds them, the longest first."""
    text = resources.files(__package__).joinpath("translations.yaml").read_text(encoding="utf-8")
    english = {
        translation: words for words, all_ in parse_own(text).items() for translation in all_
    }
    ordered = sorted(english, key=len, reverse=True)
    return english, re.compile(
        f"(?P<colon>\N{FULLWIDTH COLON}?)(?P<words>{'|'.join(map(re.escape, ordered))})"
    )
