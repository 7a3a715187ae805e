"""Print the probe's script for the hosts of an inventory.

Usage: python render_probe.py INVENTORY
"""

import sys
from pathlib import Path

from remedy.apply.start import probe_request
from remedy.inventory import load_inventory
from remedy.probe import render_probe

if __name__ == "__main__":
    sys.stdout.write(render_probe(probe_request(load_inventory(Path(sys.argv[1])))))
