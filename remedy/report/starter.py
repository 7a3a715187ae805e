"""First files: an inventory with hosts of a different program, and a commented spec."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from remedy.errors import InventoryError, raise_together
from remedy.inventory.elsewhere.listing import HostEntry, Listing
from remedy.plan import remedies
from remedy.report.explain import summary
from remedy.spec import SpecSection
from remedy.spec.words import introduction
from remedy.templating import render

SCHEMA_NAME = "remedy.schema.json"
"""The JSON Schema of the settings, beside them."""

# Addresses for documentation, RFC 5737: nobody is reached by a file that was not edited.
EXAMPLE = Listing(
    (
        HostEntry("gpu01", {"ssh_hostname": "192.0.2.1", "ssh_user": "root"}),
        HostEntry("gpu02", {"ssh_hostname": "192.0.2.2", "ssh_user": "root"}),
    )
)


def render_inventory(listing: Listing) -> str:
    """Return the text of an inventory.py with these hosts and groups, once it has been loaded as one.

    Raises:
        InventoryError: the hosts cannot be a cluster, such as two with one address.
    """
    # Only who starts with an inventory of a different program needs pyinfra here.
    from remedy.transport.reader import load_inventory

    text = render("inventory.py.j2", hosts=listing.hosts, groups=listing.groups)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inventory.py"
        path.write_text(text, encoding="utf-8")
        try:
            load_inventory(path)
        except InventoryError as error:
            raise_together(
                InventoryError(
                    f"these hosts are no inventory: {part.message.replace(f'{path}: ', '')}",
                    next_step=part.next_step,
                )
                for part in error.parts or (error,)
            )
    return text


def render_spec(models: Mapping[str, type[SpecSection]]) -> str:
    """Return the text of a remedy.yaml in which every section is there, commented out, with its defaults."""
    # The section of a remedy is mostly about what the remedy is.
    titles = {remedy.name: summary(remedy) for remedy in remedies()}
    sections = [
        {
            "name": name,
            "title": (introduction(model) or titles.get(name) or name).splitlines()[0],
            "settings": [
                {"name": key, "default": json.dumps(value)}
                for key, value in model().model_dump(mode="json").items()
            ],
        }
        for name, model in models.items()
    ]
    return render("remedy.yaml.j2", sections=sections, schema=SCHEMA_NAME)
