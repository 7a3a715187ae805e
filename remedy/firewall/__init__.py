"""Firewalls: what lets peers in, and how each kind of firewall is opened for them; pure, from state to steps.

``spans``      sets of addresses or ports as sorted ranges
``judge``      what a chain of rules does with connections from peers
``step``       what a firewall's module proposes
``iptables``, ``ufw``, ``nftables``, ``firewalld``   one firewall each
"""
