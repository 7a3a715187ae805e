"""Every kind of error that a settings file can have, in words; and every setting in words."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import ValidationError

from remedy.errors import SpecError
from remedy.plan import section_models
from remedy.report.explain import explain, section_settings
from remedy.report.schema import spec_schema
from remedy.spec import SECTIONS, load_spec
from remedy.spec.words import introduction, meanings

# Words of pydantic, Python and PyYAML, and of nothing that an operator writes.
FOREIGN = (
    "Input should",
    "Value error",
    "valid ",
    "NoneType",
    "dict",
    "'int'",
    "byte string",
    "str_",
    "does not appear",
    "xpected 4",
    "another value",
)
# What pydantic calls kinds of values, and the key of a mapping.
KINDS = ("constrained", "[key]", "function-", "list[", "literal[", "datetime", "None")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "verify: {port: 99999}",
            "verify.port is 99999, needs a whole number from 1 to 65535, or null",
        ),
        ("verify: {port: many}", 'verify.port is "many", needs a whole number from 1 to 65535'),
        ("verify: {port: 1.5}", "verify.port is 1.5, needs a whole number"),
        ("verify: {port: [1]}", "verify.port is [1], needs a whole number"),
        ("verify: {reach: sometimes}", 'verify.reach is "sometimes", needs true or false'),
        ("verify: {engine: torhc}", 'verify.engine is "torhc", needs one of torch, nccl-tests'),
        ("verify: {deadline: .inf}", "verify.deadline is Infinity, needs a number from 10 to 3600"),
        ("verify: {deadline: .nan}", "verify.deadline is NaN, needs a number from 10 to 3600"),
        ("verify: {sizes: [8, x]}", 'verify.sizes.1 is "x", needs a whole number'),
        ("verify: {sizes: 5}", "verify.sizes is 5, needs a list, not empty, each a whole number"),
        ("verify: {sizes: []}", "verify.sizes is [], needs a list, not empty, each a whole number"),
        ("verify: {sizes: [8, 2]}", "verify.sizes.1 is 2, needs a whole number, at least 4"),
        ("verify: {ranks_per_host: 0}", 'is 0, needs "auto", or a whole number, at least 1'),
        (
            "verify: {ranks_per_host: two}",
            'verify.ranks_per_host is "two", needs "auto", or a whole',
        ),
        ("verify: {min_busbw: fast}", 'verify.min_busbw is "fast", needs GB/s above 0'),
        ("verify: {python: 3}", "verify.python is 3, needs text, or null"),
        ("verify: {reach: yes}", 'verify.reach is "yes", needs true or false'),
        ("verify: {isolate: off}", 'verify.isolate is "off", needs true or false'),
        ("verify: {port: 1:30}", 'verify.port is "1:30", needs a whole number'),
        (
            "verify: {backend: nccl, engine: mpi}",
            "verify: backend is nccl, and only the engine torch",
        ),
        ("verify: 5", "verify is 5, needs settings such as `deadline:`"),
        ("verify: [port]", 'verify is ["port"], needs settings such as'),
        ("verify: {1: 2}", "there is no key 'verify.1'"),
        ("verify: {prot: 1}", "there is no key 'verify.prot'; did you mean 'port'?"),
        ("apply: {keep_days: 3}", "apply.keep_days is 3, needs a whole number from 7 to 36500"),
        ("apply: {max_failures: -1}", "apply.max_failures is -1, needs a whole number, at least 0"),
        ("apply: {waves: 0%}", 'apply.waves is "0%", needs numbers or percentages'),
        ("cluster: {user: 'a b'}", 'cluster.user is "a b", needs text that matches'),
        ("cluster: {subnet: 10.0.0.0/99}", 'subnet is "10.0.0.0/99", needs an IPv4 network'),
        ("verify: {divide: 1}", "verify.divide is 1, needs groups of the inventory, such as"),
        ("limits: {memlock: 1023}", "limits.memlock is 1023, needs bytes from 1024, a size such"),
        ("environment: {interface: a b}", 'is "a b", needs "auto", or the name of one interface'),
        ("environment: {variables: {A: 'http://u:pw@h'}}", "variables.A: a URL with a password"),
        ("dev_shm: {size: big}", 'dev_shm.size is "big", needs a size from 1m to 1024t, such'),
        ("paddle: {ports: a-b}", 'paddle.ports is "a-b", needs a range of ports from 1024,'),
        ("paddle: {ports: 9000-8000}", "paddle.ports: the first port must be 1024 or more"),
        ("fleet_versions: {nccl_minimum: 2.x}", 'is "2.x", needs a version in quotes, such as'),
        ("ssh: {login: soon}", 'ssh.login is "soon", needs a number from 1 to 3600'),
        ("environment: {variables: [A]}", 'environment.variables is ["A"], needs a mapping'),
        ("environment: {variables: {A: {b: 1}}}", 'environment.variables.A is {"b": 1}, needs'),
        ("firewall: {ports: {a: 1}}", 'firewall.ports is {"a": 1}, needs a list'),
        (
            "ssh: {gateways: []}",
            "ssh.gateways is [], needs a mapping of gateways to hosts, such as",
        ),
        (
            "ssh: {gateways: {a: []}}",
            "ssh.gateways.a is [], needs text of at most 65536 characters",
        ),
        ("ssh: {gateways: {'': b}}", 'ssh.gateways has the key "", needs text of at most'),
        ("environment: {variables: {1: b}}", "environment.variables has the key 1, needs text"),
        ("5: {}", "there is no section '5'"),
        ("null: {}", "there is no section 'None'"),
        ("just text", "it is text, needs sections such as `cluster:`"),
        ("[a, b]", "it is a list, needs sections such as `cluster:`"),
        ("42", "it is a number, needs sections"),
        ("2026-01-31", "it is text, needs sections"),
        ("verify:\n  port: 1\n  port: 2", "is not YAML: line 3: the key 'port' is there twice"),
        ("verify: {", "is not YAML: line 2, column 1: did not find expected"),
        ("\tverify: {}", "is not YAML: line 1, column 1: a tab, where YAML indents with spaces"),
        ("verify: {}\n---\nssh: {}", "is not YAML: line 2, column 1: but found another document"),
        ("verify: !!python/name:os.system x", "is not YAML: line 1, column 9: could not determine"),
        ("verify: *nowhere", "is not YAML: line 1, column 9: found undefined alias"),
        ("verify: {port: '" + "9" * 500 + "'}", "more characters), needs a whole number"),
    ],
)
def test_an_error_says_where_what_and_what_it_may_be(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as error:
        load_spec(path, section_models())
    message = error.value.message
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message
    assert not [word for word in FOREIGN if word in message.removeprefix(str(path))], message
    assert error.value.next_step


# One of each kind that a settings file can have, right for some settings and wrong for others.
LONG = "x" * 70_000
VALUES: tuple[object, ...] = (
    *(None, True, -1, 0, 1, -0.5, 1e308, 10**30, float("nan"), date(2026, 1, 31)),
    *("", " ", "x", LONG, "\x00", "-1", "\n"),
    *([], [[]], [None], [-1], [10**30], [""], ["x"], [LONG], [{}], ["a"] * 5),
    *(
        {},
        {"a": []},
        {"": ""},
        {"a": ""},
        {LONG: "x"},
        {"a": LONG},
        {"a": {"b": 1}},
        {1: 2},
        {None: "x"},
    ),
)


@pytest.mark.parametrize("name", section_models())
def test_no_answer_to_a_wrong_value_is_in_the_words_of_a_program(name: str) -> None:
    """Of each setting: what pydantic says, calls a kind of values, or would print of a value of Python."""
    models = section_models()
    for key in models[name].model_fields:
        refused = 0
        for value in VALUES:
            try:
                load_spec(None, models, {name: {key: value}})
            except SpecError as error:
                messages = [part.message for part in error.parts or (error,)]
                refused += 1
            else:
                continue
            for words in messages[:20]:
                assert not [word for word in (*FOREIGN, *KINDS) if word in words], words
                assert words.startswith(f": {name}"), words
                assert len(words) < 600, words
        assert refused, f"{name}.{key} takes anything"


@pytest.mark.parametrize("name", section_models())
def test_every_setting_has_words_of_its_own(name: str) -> None:
    model = section_models()[name]
    assert set(meanings(model)) == set(model.model_fields)
    for setting in section_settings(model):
        assert setting.meaning, setting
        assert "another value" not in setting.allowed, setting
        assert not setting.meaning.endswith(("``", ":")), setting


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_without_a_remedy_is_explained(name: str) -> None:
    text = explain(name)
    assert text.startswith(f"{name}: {introduction(SECTIONS[name])}")
    for setting in SECTIONS[name].model_fields:
        assert f"\n  {setting}: " in text


def test_the_schema_has_every_section_and_setting_with_its_meaning() -> None:
    schema = spec_schema()
    assert set(schema["properties"]) == set(section_models())
    assert schema["additionalProperties"] is False
    for name, section in schema["properties"].items():
        assert section["additionalProperties"] is False
        assert set(section["properties"]) == set(section_models()[name].model_fields)
        assert all(setting["description"] for setting in section["properties"].values())
    assert "$ref" not in str(schema), "each section is whole in itself"


# What a section refuses, a schema refuses as well: an editor marks it before a command does.
@pytest.mark.parametrize(
    ("section", "good", "bad"),
    [
        ("verify.ranks_per_host", ["auto", 1, 8], [0, -3, "two", 1.5]),
        ("verify.sizes", [None, [4], [8, 1024]], [[], [0], [2], ["x"], 5]),
        ("verify.min_busbw", [None, 40, 0.5, "60%", "12.5"], [0, -1, "fast", True, [1]]),
        ("verify.divide", [None, 2, "rack*", "8"], [1, 0, "", " ", "-1", [2]]),
        ("verify.port", [None, 29500], [0, 65536, "x"]),
        ("apply.waves", ["100%", "1,10%,100%", "2, 4"], ["0", "3x", "", "10%%", 5]),
        ("port_range.range", [None, "32768-60999", [32768, 60999]], ["x", "1-2", 5, [1]]),
        ("port_range.reserve", [[], [29500, "9000-9100"]], [["x"], [0], ["1-2-3"], 5]),
        ("firewall.ports", [[9000], ["9000", "9000-9100"]], [["x"], [70000], [""]]),
        ("firewall.also_from", [["10.0.0.9", "10.0.0.0/8"]], [["x"], ["fd00::1"], [5]]),
        ("limits.memlock", [None, 4096, -1, "64g", "unlimited"], [0, "64x", "", [1]]),
        ("paddle.ports", [None, "8000-8999"], ["", "x", "8000", "1-2-3"]),
        ("fleet_versions.nccl_minimum", ["2.8", "2.18.3"], ["", "x", "2-8", 5]),
        ("environment.interface", [None, "auto", "eno2"], ["", "x", "a b", "60%"]),
        ("orphans.ports", [None, [29500]], [[0], [70000], ["x"], 5]),
        ("ascend.node_timeout", ["auto", 0, 600], [-1, "soon"]),
        ("cluster.subnet", [None, "10.0.0.0/8", "10.1.2.3"], ["ten", "", "fd00::/8", 10]),
    ],
)
def test_the_schema_takes_what_the_settings_take(
    section: str, good: list[object], bad: list[object]
) -> None:
    name, key = section.split(".")
    schema = Draft202012Validator(spec_schema())
    for value, is_good in [*((v, True) for v in good), *((v, False) for v in bad)]:
        assert schema.is_valid({name: {key: value}}) is is_good, value
        try:
            section_models()[name].model_validate({key: value})
            is_taken = True
        except ValidationError:
            is_taken = False
        assert is_taken is is_good, value
