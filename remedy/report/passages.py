"""What is shown of a line that is too long to be shown whole."""

from __future__ import annotations

from remedy.diagnose.catalogue import literals_of

GAP = " ... "


def passage(text: str, symptom: str, most: int) -> str:
    """Return a line, or the passage of it that says what happened.

    That is its beginning and its end: a log puts who speaks first, and why last. Where the words that the
    catalogue knows stand in neither, it is what is about them.

    Args:
        text: the line.
        symptom: the entry that matched, "" for a program's own exception.
        most: characters, at least 40.
    """
    text = text.strip()
    if len(text) <= most:
        return text
    ending = most // 3
    head = most - ending - len(GAP)
    literals = (literal for literal in literals_of(symptom) if literal in text)
    words = min(literals, key=text.index, default="")
    place = text.index(words)
    if place + max(ending, len(words)) <= head or place >= len(text) - ending:
        return f"{text[:head].rstrip()}{GAP}{text[-ending:].lstrip()}"
    begin = max(0, place - most // 4)
    end = min(len(text), begin + most - 2 * len(GAP))
    after = GAP.rstrip() * (end < len(text))
    return f"{GAP.lstrip()}{text[begin:end].strip()}{after}"
