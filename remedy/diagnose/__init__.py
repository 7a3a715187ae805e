"""Diagnosing logs: from the text of an error to the cause, the evidence and the remedy.

``logs.diagnose_paths`` reads files and folders of any size, ``logs.diagnose_lines`` takes lines that are in
memory already. Neither connects to a host; ``confirm`` compares a diagnosis with what a probe read. Nothing is
imported here: every command knows what a diagnosis is (``diagnosis``), and few read a log.

The rooms, in the order in which a log goes through them: ``scanner`` (bytes to events, by the ``catalogue``, by
``phrases`` and, for what tools print, by ``states``), ``endings`` and ``course`` (how each run ended, and what
happened to which rank before), ``judgement`` (the cause, and how sure that is). What to do about it is beside
them: ``cures``, ``advice``, ``confirm``.
"""
