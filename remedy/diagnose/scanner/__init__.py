"""From the bytes of a log to its events: opened, unwrapped, searched for literals, tried on the catalogue.

``reader`` opens logs, ``scan`` reads one in one pass and returns a ``LogScan``; ``events`` says which events of
all logs count. Whatever comes after that sees no bytes.
"""
