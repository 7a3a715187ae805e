"""Throw-away clusters of real hosts on one machine.

A lab host is a systemd machine of its own: its own init, sshd and host key, network namespace, IPC
and disk. All hosts share one root file system, read-only, each with an overlay above it. Everything
a lab makes carries a tag derived from its folder, so that ``down`` finds it in the kernel even when
no record of it is left.
"""
