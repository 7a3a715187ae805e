"""Reading YAML: plain values only, by libyaml where PyYAML was built with it (ten times as fast)."""

from __future__ import annotations

from typing import Any

# libyaml makes values by recursion, and a text that is nested deeply enough, such as one from a host, ends the
# process. No setting is nested as deeply as this.
DEEPEST = 100


class YamlError(ValueError):
    """A text that is no YAML, or holds more than plain values; its message fits on one line."""


def parse_yaml(text: str | bytes) -> Any:
    """Return the value that a YAML text stands for.

    Raises:
        YamlError: it cannot be read.
    """
    import yaml  # many commands read none

    # Both loaders are the safe ones: they make no objects of the text's choice.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise YamlError(f"it is nested more than {DEEPEST} levels deep")
        return yaml.load(text, Loader=loader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise YamlError(" ".join(str(error).split())) from error
