"""Watch which TCP ports a host listens on until a file appears, and print each with the program behind it.

It is run on the host: standard library only. Loopback is left out, and so is what listened before.
"""

import json
import sys
import time
from pathlib import Path

LISTEN = "0A"  # include/net/tcp_states.h
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def listening() -> dict[str, int]:
    """Return the inodes of all sockets that listen for others than this host, each with its port."""
    ports = {}
    for table in TABLES:
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            address, port = words[1].split(":")
            local = address[-2:] == "7F" if len(address) == 8 else address.endswith("01000000")
            if words[3] == LISTEN and not local:
                ports[words[9]] = int(port, 16)
    return ports


def program(inode: str) -> list[str]:
    """Return the arguments of the process that holds a socket; none where it has gone."""
    socket = f"socket:[{inode}]"
    for pid in (path.name for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            if socket in (str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()):
                text = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
                return text.split("\0")[:-1]
        except OSError:
            continue
    return []


def main() -> None:
    """Watch until the file that is named appears, and print what was new."""
    stop, before, seen = Path(sys.argv[1]), set(listening()), {}
    while not stop.exists():
        for inode, port in listening().items():
            if inode not in before:
                before.add(inode)
                seen[inode] = {"port": port, "program": program(inode)}
        time.sleep(0.1)
    print(json.dumps(list(seen.values())))


main()
