"""All that travels to hosts, as text: the agent, the engines and their ranks, the calls between hosts.

Nothing here may import more than the standard library of Python 3.8 and its own folder. What a rank needs
beyond that (torch, paddle, mindspore) it imports when it runs.
"""
