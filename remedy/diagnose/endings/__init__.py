"""How runs end: well, in the middle of their work, by hand, or without a word; ``ends`` is what others ask."""
