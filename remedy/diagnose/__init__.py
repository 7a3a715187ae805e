"""Diagnosing logs: from the text of an error to the cause, the evidence and the remedy.

``logs.diagnose_paths`` reads files and folders of any size, ``logs.diagnose_lines`` takes lines that are in
memory already. Neither connects to a host; ``confirm`` compares a diagnosis with what a probe read. Nothing is
imported here: every command knows what a diagnosis is (``diagnosis``), and few read a log.
"""
