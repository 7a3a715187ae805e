"""Running scripts on hosts that only others reach, over ClusterShell's tree of gateways.

A gateway is a machine with ClusterShell that logs in to its hosts by its own ssh. ``routes`` is which hosts
stand behind which gateways; ``tree`` runs scripts there, in place of connections of this process; ``relay`` is
the process that speaks with gateways by ClusterShell's own ``Task``, ``TreeWorker`` and ``PropagationChannel``,
hardened against gateways that mean harm (``channel``, ``decoder``). What goes wrong with one host is that
host's ``Output.error``.

This package imports nothing, so that the relay starts without pyinfra.
"""
