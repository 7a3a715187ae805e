"""Firewalls: what packets between a host and its peers meet, and how each firewall lets them through; pure.

``packets``, ``reading``, ``traffic``   what a condition, a rule and a chain do with sets of packets
``iptables_rules``, ``nftables_rules``, ``ebtables_rules``, ``ipsets``   reading the rules of each tool
``hooks``      every base chain that packets pass, in order
``walls``      which firewall a chain belongs to, and what it drops
``step``       what a firewall's module proposes
``iptables``, ``ufw``, ``nftables``, ``firewalld``   one firewall each
``boot``       what the next boot loads
"""
