"""How ssh goes to gateways, and from them to hosts: with strict host keys, and no forwarding."""

# No agent, no X11, no port of anybody's, no shared connection: a confirmation has to come over one of its own.
PLAIN = (
    *("-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes", "-oControlMaster=no"),
    *("-oControlPath=none", "-oPermitLocalCommand=no", "-oBatchMode=yes"),
    "-oStrictHostKeyChecking=yes",
)
