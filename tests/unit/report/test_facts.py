"""What the probe read, as plain values."""

from __future__ import annotations

import json

from remedy.probe import File, Resolved
from remedy.probe.accelerators import Gpu, GpuProcess, Gpus, PciDevice
from remedy.probe.processes import Process
from remedy.probe.resolved import Answers
from remedy.report.facts import FileFact, host_facts, render_facts
from remedy.report.schema import schema_of
from remedy.values import Unknown
from tests.unit.build import host_state
from tests.unit.schemas import conforms


def test_names_that_many_hosts_answer_alike_are_plain_values_too() -> None:
    peers = Resolved(Answers(gpu01=("10.0.0.1",), gpu02=("10.0.0.2",)), {"gpu02": ("127.0.1.1",)})
    state = host_state("gpu01", "10.0.0.1")
    assert not isinstance(state.names, Unknown)
    names = state.names.model_copy(update={"peers": peers})
    state = state.model_copy(update={"names": names})
    facts = json.loads(json.dumps(host_facts(state)))
    assert facts["names"]["peers"] == {"gpu01": ["10.0.0.1"], "gpu02": ["127.0.1.1"]}


def test_a_file_has_all_that_was_read_of_it_but_its_content_as_the_schema_says() -> None:
    assert {*FileFact.model_fields} == {*File.model_fields} - {"content"} | {"size", "sha256"}
    null = File(path="/dev/null", real_path="/dev/null", exists=True, kind="a regular file")
    state = host_state("gpu01", "10.0.0.1").model_copy(update={"files": {"/dev/null": null}})
    facts = json.loads(json.dumps(host_facts(state)))
    schema = schema_of("facts")
    assert facts["files"]["/dev/null"]["kind"] == "a regular file"
    assert conforms(facts, schema["$defs"]["HostFacts"], schema)


def test_rows_of_tables_have_names_for_what_they_hold() -> None:
    words = ("python", "--token=x", "train.py")
    process = Process(7, 1, 7, 7, False, "S", "python", 900, 0, arguments=words)
    gpu = Gpu(0, "GPU-1", "00000000:00:06.0", "NVIDIA H200", "580.1", True, "Default", 143771, 0, 0)
    gpus = Gpus(
        pci=(PciDevice("0000:00:06.0", "10de", "2335", "0302"),),
        driver="580.1",
        devices=(gpu,),
        processes=(GpuProcess(7, "GPU-1", 1634),),
        acs={},
        links={0: 450.0},
    )
    state = host_state("gpu01", "10.0.0.1")
    state = state.model_copy(update={"gpus": gpus, "processes": (process,)})
    facts = json.loads(json.dumps(host_facts(state)))
    assert facts["gpus"]["devices"][0]["name"] == "NVIDIA H200"
    assert facts["gpus"]["processes"] == [{"pid": 7, "gpu": "GPU-1", "memory": 1634}]
    assert facts["gpus"]["links"] == {"0": 450.0}
    assert facts["processes"][0]["arguments"] == ["python", "--token=<redacted>", "train.py"]
    schema = schema_of("facts")
    assert conforms(facts, schema["$defs"]["HostFacts"], schema)
    lines = list(render_facts({"gpu01": state}, ["gpus"]))
    assert "gpus.devices.0.name = NVIDIA H200  (gpu01)" in lines
