"""Two machines, reached as root: the smallest cluster there is.

The addresses are for documentation (RFC 5737), so nobody is reached before you have put your own in. A host's
name here is the host name that the machine gets. Copy the file to where the cluster's records are to be kept:
remedy keeps them in .remedy beside it.
"""

from __future__ import annotations

hosts = (
    [
        ("gpu01", {"ssh_hostname": "192.0.2.11"}),
        ("gpu02", {"ssh_hostname": "192.0.2.12"}),
    ],
    # For all of them; a host's own data wins.
    {
        "ssh_user": "root",
        # The interpreter that has torch, where that is not the python3 of a plain login:
        # "python": "/opt/training/bin/python",
    },
)
