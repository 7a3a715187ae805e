"""The rank that torchrun starts: it joins the others at torch's store, and sums over NCCL or gloo.

It needs torch >= 2.1. Every wait is bounded: torch's own defaults (10 minutes for NCCL, 30 for gloo) are
never used.
"""
