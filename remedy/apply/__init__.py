"""Making the changes of a plan on hosts, one script a host, and reading what each script reports.

``script`` renders the script from the shell text in ``host/``; ``carrier`` brings it to the hosts and confirms
guarded changes; ``report`` reads the answers; ``under_pyinfra`` makes a remedy usable without the rest of this
house. A host that is not as planned refuses, and keeps what is needed to take everything back by itself.
"""
