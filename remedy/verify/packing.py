"""What travels to a host in the text of a script: Python modules, packed, and how they are made importable.

Nothing of it is installed there. The agent imports what it needs from memory; for the programs that it starts
it writes the same modules into the run's own folder.
"""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from importlib import resources

HERE = "remedy.verify.onhost"

# An importer over the packed sources, and the start of one of the programs.
START = """\
import base64, importlib.abc, importlib.util, json, sys, zlib
cargo = json.loads(zlib.decompress(base64.b64decode('''
{cargo}''')))
class Cargo(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name in cargo:
            return importlib.util.spec_from_loader(name, self, is_package=not cargo[name])
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        path = module.__name__.replace(".", "/") + ".py"
        exec(compile(cargo[module.__name__], path, "exec"), module.__dict__)
sys.meta_path.insert(0, Cargo())
config = json.loads({config!r})
{call}
"""
AGENT = "from remedy.verify.onhost import agent; agent.main(config, cargo)"
KNOCK = "from remedy.verify.onhost import knock; knock.main(config)"


def sources(modules: tuple[str, ...]) -> dict[str, str]:
    """Read the sources of modules by their full names, packages before what is in them; "" is a package.

    Args:
        modules: their names below ``remedy.verify.onhost``, such as ``engines.torch``.
    """
    files = resources.files(HERE)
    texts: dict[str, str] = {}
    for module in modules:
        name = f"{HERE}.{module}"
        words = name.split(".")
        texts.update(dict.fromkeys((".".join(words[:end]) for end in range(1, len(words))), ""))
        texts[name] = files.joinpath(f"{module.replace('.', '/')}.py").read_text("utf-8")
    return texts


@cache
def pack(modules: tuple[str, ...]) -> str:
    """Pack the sources of modules, as base64 of what zlib made of a JSON object.

    Args:
        modules: as for ``sources``.
    """
    packed = zlib.compress(json.dumps(sources(modules)).encode("ascii"), 9)
    return base64.encodebytes(packed).decode("ascii")


def start(modules: tuple[str, ...], config: dict[str, object], call: str = AGENT) -> str:
    """Render the Python text that makes modules importable and starts a program.

    Args:
        modules: as for ``pack``; the program and what it imports must be among them.
        config: what the program is given, as JSON can hold it.
        call: the lines that start it.
    """
    return START.format(cargo=pack(modules), config=json.dumps(config), call=call)
