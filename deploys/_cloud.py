"""What cloud-init is told to do at boot: its configuration, read as it reads it."""

from __future__ import annotations

from typing import Any

from remedy.probe import HostState
from remedy.values import Unknown
from remedy.yaml_text import YamlError, parse_yaml

MAIN = "/etc/cloud/cloud.cfg"
DROP_INS = "/etc/cloud/cloud.cfg.d/"


def cloud_setting(host: HostState, key: str) -> tuple[Any, str] | None:
    """Return a top-level setting of cloud-init and where it was said; None where there is no cloud-init.

    cloud-init merges cloud.cfg and then cloud.cfg.d/*.cfg in the order of their names; the last word counts.
    What is set nowhere is None.
    """
    main = host.file(MAIN)
    if isinstance(main, Unknown) or not main.exists:
        return None
    value, origin = None, f"{key} is not set anywhere"
    drop_ins = sorted(path for path in host.files if path.startswith(DROP_INS))
    for path in (MAIN, *drop_ins):
        file = host.file(path)
        if isinstance(file, Unknown) or not file.exists:
            continue
        try:
            settings = parse_yaml(file.content)
        except YamlError:
            continue  # cloud-init skips such a file too
        if isinstance(settings, dict) and key in settings:
            value, origin = settings[key], f"{path}: {key}: {settings[key]}"
    return value, origin
