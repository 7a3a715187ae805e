"""The spec: what the user wants, read from ``remedy.yaml`` beside the inventory.

Every field has a default that works, so no file is needed at all. Each remedy brings its own section; a
section is called like its remedy.
"""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from remedy.errors import SpecError

FILE_NAME = "remedy.yaml"

Section = TypeVar("Section", bound="SpecSection")


class SpecSection(BaseModel):
    """A section of ``remedy.yaml``: closed to unknown keys, never changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _subnet(text: str) -> str:
    network = ipaddress.ip_network(text, strict=False)
    if network.version != 4:
        raise ValueError("the cluster network must be IPv4")
    return str(network)


def _wave_sizes(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*%?(,[1-9][0-9]*%?)*", text.replace(" ", "")):
        raise ValueError("give numbers or percentages above 0, such as 1,10%,100%")
    return text


class ClusterSpec(SpecSection):
    """Which network carries the training traffic.

    ``subnet`` (CIDR) picks each host's cluster address by its network. None: the address used for ssh where the
    host has it on an interface, else the first address in a subnet that all hosts share.
    """

    subnet: Annotated[str, AfterValidator(_subnet)] | None = None


class ApplySpec(SpecSection):
    """How changes are made.

    ``confirm_seconds``: a change that can cut the connection is taken back by the host itself unless a new
    connection confirms it within this time. ``without_systemd``: on a host without systemd the timer does not
    survive a reboot; "refuse" then refuses such changes, "fallback" makes them. ``waves``: how many hosts are
    changed at a time, such as "1,10%,100%"; each wave is looked at again before the next. ``max_failures``: no
    further wave is begun once more hosts of the run have failed, unreachable ones included; null: go on.
    """

    confirm_seconds: int = Field(default=60, ge=10, le=3600)
    without_systemd: Literal["fallback", "refuse"] = "fallback"
    waves: Annotated[str, AfterValidator(_wave_sizes)] = "100%"
    max_failures: int | None = Field(default=None, ge=0)


class ApprovalSpec(SpecSection):
    """Who has to agree before anything is changed.

    ``required``: how many valid signatures of the plan file are needed; with more than one, none may be the
    author's. ``allowed_signers``: the file that says whose count, relative to the inventory; it MUST NOT be
    writable by those who write plans. ``revoked_keys``: a file of keys that count no more, a list of public
    keys or a KRL.
    """

    required: int = Field(default=0, ge=0, le=10)
    allowed_signers: str = "allowed_signers"
    revoked_keys: str | None = None


class Spec:
    """The whole of ``remedy.yaml``, one model a section.

    Args:
        sections: section name to model; sections that the file leaves out have their defaults.
    """

    def __init__(self, sections: Mapping[str, SpecSection]) -> None:
        self.sections = dict(sections)

    def section(self, name: str, model: type[Section]) -> Section:
        """Return the section called ``name``, which is a ``model``; its defaults when it was not loaded."""
        value = self.sections.get(name)
        return value if isinstance(value, model) else model()

    def override(self, name: str, **values: object) -> None:
        """Replace settings of a section by what the command line says; None leaves one as it is.

        Raises:
            SpecError: a value cannot be.
        """
        given = {key: value for key, value in values.items() if value is not None}
        section = self.sections[name]
        merged = {**section.model_dump(), **given}
        self.sections[name] = _section("command line", name, type(section), {name: merged})

    @property
    def cluster(self) -> ClusterSpec:
        """The ``cluster`` section."""
        return self.section("cluster", ClusterSpec)

    @property
    def apply(self) -> ApplySpec:
        """The ``apply`` section."""
        return self.section("apply", ApplySpec)

    @property
    def approval(self) -> ApprovalSpec:
        """The ``approval`` section."""
        return self.section("approval", ApprovalSpec)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what the spec means; the way it is written down does not matter."""
        meaning = {name: s.model_dump(mode="json") for name, s in self.sections.items()}
        return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def load_spec(path: Path | None, models: Mapping[str, type[SpecSection]]) -> Spec:
    """Read ``remedy.yaml``.

    Args:
        path: the file; None means all defaults.
        models: the model of each section that may be in it.

    Raises:
        SpecError: the file cannot be read, is not YAML, has a key that does not exist (the nearest one that
            does is named) or a value that cannot be; the message has the path inside the file.
    """
    document: Any = {}
    where = str(path)
    if path is not None:
        # Most inventories have no such file, and do without its parser.
        import yaml

        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SpecError(
                f"{where}: {error.strerror}", next_step="Give a file that can be read with --spec."
            ) from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise SpecError(
                f"{where} is not YAML: {' '.join(str(error).split())}",
                next_step="Correct it, or remove it to use the defaults.",
            ) from error
    document = {} if document is None else document
    if not isinstance(document, dict):
        raise SpecError(
            f"{where}: expected sections such as `cluster:`, found {type(document).__name__}",
            next_step="Start each setting with its section.",
        )
    for name in document:
        if name not in models:
            raise SpecError(
                f"{where}: there is no section {name!r}{_nearest(str(name), models)}",
                next_step=f"Sections: {', '.join(sorted(models))}.",
            )
    return Spec({name: _section(where, name, model, document) for name, model in models.items()})


def _section(
    where: str, name: str, model: type[SpecSection], document: Mapping[str, Any]
) -> SpecSection:
    value = document.get(name)
    try:
        return model.model_validate({} if value is None else value)
    except ValidationError as failure:
        error = failure.errors()[0]
        path = ".".join([name, *(str(part) for part in error["loc"])])
        if error["type"] == "extra_forbidden":
            key = str(error["loc"][-1])
            raise SpecError(
                f"{where}: there is no key {path!r}{_nearest(key, model.model_fields)}",
                next_step=f"Keys of {name}: {', '.join(sorted(model.model_fields))}.",
            ) from failure
        raise SpecError(
            f"{where}: {path}: {error['msg']}", next_step="Correct the value."
        ) from failure


def _nearest(word: str, known: Mapping[str, object]) -> str:
    hits = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {hits[0]!r}?" if hits else ""
