"""Print the probe's script for the hosts of an inventory.

Usage: python render_probe.py INVENTORY
"""

import sys
from pathlib import Path

from remedy.apply.start import probe_request
from remedy.probe import render_probe
from remedy.spec import Spec
from remedy.transport.reader import load_inventory

if __name__ == "__main__":
    sys.stdout.write(render_probe(probe_request(load_inventory(Path(sys.argv[1])), Spec({}))))
