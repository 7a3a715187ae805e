"""Reading ``remedy.yaml`` and checking it against the models of its sections."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from remedy.errors import SpecError, raise_together
from remedy.files import STANDARD, name_of, read_standard
from remedy.spec.apply import ApplySpec
from remedy.spec.approval import ApprovalSpec
from remedy.spec.cluster import ClusterSpec
from remedy.spec.section import SpecSection
from remedy.spec.ssh import SshSpec
from remedy.spec.verify import VerifySpec
from remedy.spec.words import complaints
from remedy.yaml_text import YamlError, parse_yaml

_KINDS = {list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false"}
_NO_KEY = ("extra_forbidden", "invalid_key")
MOST_BYTES = 16 << 20
FILE_NAME = "remedy.yaml"
COMMAND_LINE = "command line"
"""Where settings are from that options set."""

# The sections that belong to no remedy.
SECTIONS: Mapping[str, type[SpecSection]] = {
    "cluster": ClusterSpec,
    "apply": ApplySpec,
    "approval": ApprovalSpec,
    "verify": VerifySpec,
    "ssh": SshSpec,
}

# Sections that decide nothing about what hosts become; the command line replaces settings of them.
MANNERS = frozenset(("apply", "approval", "verify", "ssh"))

Section = TypeVar("Section", bound=SpecSection)


class Spec:
    """The whole of ``remedy.yaml``, one model a section.

    Args:
        sections: section name to model; sections that the file leaves out have their defaults.
        models: returns the models of all sections that there may be; None where ``sections`` has all. It is
            asked when somebody wants all sections, since that imports every remedy.
    """

    def __init__(
        self,
        sections: Mapping[str, SpecSection],
        models: Callable[[], Mapping[str, type[SpecSection]]] | None = None,
    ) -> None:
        self._sections = dict(sections)
        self._models = models

    @property
    def sections(self) -> dict[str, SpecSection]:
        """Every section by its name."""
        if self._models is not None:
            defaults = {name: model.model_construct() for name, model in self._models().items()}
            self._sections = {**defaults, **self._sections}
            self._models = None
        return self._sections

    def section(self, name: str, model: type[Section]) -> Section:
        """Return the section called ``name``, which is a ``model``; its defaults when it was not loaded."""
        value = self._sections.get(name)
        return value if isinstance(value, model) else model()

    def override(self, name: str, origin: str = COMMAND_LINE, /, **values: object) -> None:
        """Replace settings of a section; None keeps a setting.

        Args:
            name: of the section.
            origin: where the values are from, in words. Errors name options of the command line.
            values: by setting.

        Raises:
            SpecError: a value is not allowed.
        """
        settings = {key: value for key, value in values.items() if value is not None}
        if name not in self._sections:
            raise _no_section(origin, name, self._sections)
        section = self._sections[name]
        merged = {**section.model_dump(exclude_unset=True), **settings}
        try:
            self._sections[name] = _section(name, type(section), {name: merged})
        except ValidationError as failure:
            raise_together(_errors(origin, name, type(section), merged, failure))

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
    def verify(self) -> VerifySpec:
        """The ``verify`` section."""
        return self.section("verify", VerifySpec)

    @property
    def ssh(self) -> SshSpec:
        """The ``ssh`` section."""
        return self.section("ssh", SshSpec)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what the spec asks of hosts, however it is written, and however remedy works."""
        meaning = {
            name: section.model_dump(mode="json")
            for name, section in self.sections.items()
            if name not in MANNERS
        }
        return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def load_spec(
    path: Path | None,
    models: Mapping[str, type[SpecSection]],
    document: dict[str, Any] | None = None,
    all_models: Callable[[], Mapping[str, type[SpecSection]]] | None = None,
) -> Spec:
    """Read ``remedy.yaml``.

    Args:
        path: the file, ``-`` for standard input; None means all defaults.
        models: the model of each section that may be in it.
        document: what was read from it before; None to read it.
        all_models: returns the models of all sections, where ``models`` has only those that are in the file.

    Raises:
        SpecError: the file cannot be read, is not YAML, has a key that does not exist (the nearest one that
            does is named) or a value that is not allowed; the message has the path inside the file.
    """
    where = "" if path is None else name_of(path)
    document = read_document(path) if document is None else document
    errors = [_no_section(where, str(name), models) for name in document if name not in models]
    sections = {}
    for name, model in models.items():
        try:
            sections[name] = _section(name, model, document)
        except ValidationError as failure:
            errors += _errors(where, name, model, document[name], failure)
    raise_together(errors)
    return Spec(sections, all_models)


def read_document(path: Path | None) -> dict[str, Any]:
    """Return what a settings file holds, by section; None: nothing.

    Raises:
        SpecError: it cannot be read, or is no YAML that could be settings.
    """
    if path is None:
        return {}
    try:
        content = read_standard(MOST_BYTES) if path == STANDARD else path.read_bytes()
        document = parse_yaml(content, core=True)
    except OSError as error:
        raise SpecError(
            f"{name_of(path)}: {error.strerror}",
            next_step="Give a file that can be read with --spec.",
        ) from error
    except YamlError as error:
        raise SpecError(
            f"{name_of(path)} is not YAML: {error}",
            next_step="Correct it, or remove it to use the defaults.",
        ) from error
    document = {} if document is None else document
    if not isinstance(document, dict):
        raise SpecError(
            f"{name_of(path)}: it is {_KINDS.get(type(document), 'a value')}, needs sections such as "
            "`cluster:`",
            next_step="Start each setting with its section.",
        )
    return document


def _section(name: str, model: type[SpecSection], document: Mapping[str, Any]) -> SpecSection:
    """Return a section of a document; raises ``ValidationError``."""
    value = document.get(name)
    # Defaults are not validated anyway.
    return model.model_construct() if value is None else model.model_validate(value)


def _no_section(where: str, name: str, known: Mapping[str, object]) -> SpecError:
    return SpecError(
        f"{where}: there is no section {name!r}{_nearest(name, known)}",
        next_step=f"Sections: {', '.join(sorted(known))}.",
    )


def _errors(
    where: str, name: str, model: type[SpecSection], value: object, failure: ValidationError
) -> Iterator[SpecError]:
    """Yield what is wrong with the settings of a section."""
    errors = failure.errors()
    for error in errors:
        if error["type"] in _NO_KEY:
            path = ".".join([name, *(str(part) for part in error["loc"])])
            key = str(error["loc"][-1])
            yield SpecError(
                f"{where}: there is no key {path!r}{_nearest(key, model.model_fields)}",
                next_step=f"Keys of {name}: {', '.join(sorted(model.model_fields))}.",
            )
    others = [error for error in errors if error["type"] not in _NO_KEY]
    for words in complaints(name, model, value, others):
        yield SpecError(
            _as_option(words, name, model) if where == COMMAND_LINE else f"{where}: {words}",
            next_step=f"Correct it; the settings of {name}: remedy explain {name}",
        )


def _as_option(words: str, section: str, model: type[SpecSection]) -> str:
    """Return what is wrong with a setting by the option that sets it, as it is typed."""
    path = words.removeprefix(f"{section}.")
    key = "".join(takewhile(lambda sign: sign.isalnum() or sign == "_", path))
    if path == words or key not in model.model_fields:  # settings that do not go together
        return f"{COMMAND_LINE}: {words}"
    # null is no word of a command line.
    return f"--{key.replace('_', '-')}{path[len(key) :].removesuffix(', or null')}"


def _nearest(word: str, known: Mapping[str, object]) -> str:
    hits = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {hits[0]!r}?" if hits else ""
