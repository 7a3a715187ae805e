"""The program that torchrun starts once a rank: it joins the group, proves the sum and measures.

This package travels to the hosts as text: it needs the standard library and torch alone (torch >= 2.1,
Python >= 3.8), and imports nothing of remedy but itself. Nothing it finds is believed because it exits with
0: it leaves facts from which the controller computes the verdict itself. Those are the digest of the summed
vector, the identities that came in over the group, and its phase, which says how far it got when it has to
be killed.

Every wait is bounded. torch's own defaults (10 minutes for NCCL, 30 for gloo) are never used.
"""
