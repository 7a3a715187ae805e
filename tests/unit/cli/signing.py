"""``remedy approve`` up to the passphrase of a key, without its own question before."""

from __future__ import annotations

import sys

from remedy.cli import consent
from remedy.cli.main import main

if __name__ == "__main__":
    consent.ask = lambda *_, **__: None
    sys.argv[0] = "remedy"
    main()
