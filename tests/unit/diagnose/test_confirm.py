"""A finding confirms a cause only where it is about the thing that failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.catalogue import catalogue
from remedy.diagnose.confirm import confirm, explain, settled
from remedy.diagnose.diagnosis import Candidate, ConfirmationStatus, Diagnosis, Quote, sure
from remedy.diagnose.judgement.alternatives import SCORE
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.objects import Named, explains, of_quotes
from remedy.plan import Finding, FindingKind, all_causes
from tests.unit.plans import plan_with

HOSTS = ("gpu01", "gpu02", "gpu03")
ADDRESSES = {"10.0.0.11": "gpu01", "10.0.0.12": "gpu02", "10.0.0.13": "gpu03"}
REPORT, DRIFT, BLOCKED = FindingKind.REPORT, FindingKind.DRIFT, FindingKind.BLOCKED
CONFIRMED, OPEN, REFUTED = (
    ConfirmationStatus.CONFIRMED,
    ConfirmationStatus.OPEN,
    ConfirmationStatus.REFUTED,
)

LINK = "gpu01 -> gpu02 port 41235: no answer (dropped on the way): 4.0 s"
BY_ADDRESS = "NCCL WARN socketStartConnect: Connect to 10.0.0.12<41235> failed : No route to host"
TAKEN = "the rendezvous port 29500 on gpu01 is held by process 812"
ONE_NAME = "2 hosts call themselves 'node'"
NO_INTERFACE = "[enforce fail at device.cc:83] ifa != nullptr. Unable to find address for: eno7"
SHM = "Error: failed to extend /dev/shm/nccl-Xa3 to 33030532 bytes, error: No space left on device (28)"
GONE = "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12) ran for 600123 milliseconds"


UNRESOLVED = (
    "[c10d] The IPv6 network addresses of (gpu02, 29500) cannot be retrieved (gai error: -2 - x)"
)
WRONG = "gpu01 -> gpu02: resolves its name wrongly: gpu02 is 10.9.9.9"
INCLUDE = """\
WARNING: An invalid value was given for btl_tcp_if_include.  This
value will be ignored.

  Local host: gpu01
  Value:      ens33
  Message:    Unknown interface name"""
PADDLE = "LAUNCH INFO 2022-07-20 12:10:15,870 Waiting peer start..."
NO_STORE = "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined."  # noqa: E501


def finding(label: str, kind: FindingKind, host: str | None, title: str, *evidence: str) -> Finding:
    return Finding(
        host=host, remedy="firewall", kind=kind, label=label, title=title, evidence=evidence
    )


def wall(host: str, *needed: str) -> Finding:
    title = "ufw keeps the cluster's hosts out of ports that training needs"
    words = ("-A INPUT -j DROP", *(f"needed: {ports}: between the workers" for ports in needed))
    return finding("firewall-ports", DRIFT, host, title, *words)


def orphan(port: int, kind: FindingKind = BLOCKED) -> Finding:
    title = f"an orphaned process holds port {port}"
    words = f"pid 812 (python train.py), uid 0, holds port {port}"
    return finding("master-port-in-use", kind, "gpu01", title, words)


def unresolved(host: str, *names: str) -> Finding:
    title = f"names do not resolve to the cluster address: {len(names)} of the cluster's hosts"
    words = (f"{name}: no answer, expected 10.0.0.9" for name in names)
    return finding("hostname-unresolvable", DRIFT, host, title, *words)


def setting(name: str, value: str) -> Finding:
    label = "mpi-nic-mismatch" if name.startswith("OMPI") else "wrong-interface"
    return finding(label, DRIFT, "gpu03", f"/etc/environment says {name}={value}: no {value} here")


def left(line: str) -> Finding:
    title = f"/etc/environment sets {line}: only a launcher sets it"
    return finding("rank-mismatch", DRIFT, "gpu03", title)


CASES = {
    "a wall on the host of the link": (LINK, wall("gpu02", "32768-60999"), CONFIRMED),
    "a wall on the host with the address": (BY_ADDRESS, wall("gpu02", "32768-60999"), CONFIRMED),
    "a wall on a third host": (LINK, wall("gpu03", "32768-60999"), OPEN),
    "a wall before another port": (LINK, wall("gpu02", "29500"), OPEN),
    "what is loaded at boot is not known": (
        LINK,
        finding("firewall-ports", REPORT, "gpu02", "what loads iptables' rules at boot is unknown"),
        REFUTED,
    ),
    "no rule is in force": (
        LINK,
        finding("firewall-ports", REPORT, "gpu02", "firewalld runs, none of its rules is in force"),
        REFUTED,
    ),
    "a rule that waits for the next boot": (
        LINK,
        finding(
            "firewall-ports",
            DRIFT,
            "gpu02",
            "what nftables loads at boot keeps hosts out",
            "needed: 32768-60999",
        ),
        OPEN,
    ),
    "a peer of the link that did not answer": (
        LINK,
        finding("neighbour-entry", REPORT, "gpu01", "gpu02 did not answer when this host asked"),
        CONFIRMED,
    ),
    "a third host that did not answer": (
        LINK,
        finding("neighbour-entry", REPORT, "gpu01", "gpu03 did not answer when this host asked"),
        REFUTED,
    ),
    "an orphan on the port": (TAKEN, orphan(29500), CONFIRMED),
    "a live process on the port": (TAKEN, orphan(29500, REPORT), CONFIRMED),
    "an orphan on another port": (TAKEN, orphan(29400), OPEN),
    "a live process on another port": (TAKEN, orphan(8118, REPORT), REFUTED),
    "ports that the kernel may give away": (
        TAKEN,
        finding(
            "master-port-in-use",
            DRIFT,
            "gpu01",
            "the kernel may give ports away",
            "needed: 60000-60031: HCCL",
        ),
        OPEN,
    ),
    "clones of one image": (
        ONE_NAME,
        finding(
            "duplicate-hostname", REPORT, None, "3 hosts have one machine-id", "gpu01", "gpu02"
        ),
        REFUTED,
    ),
    "the name itself": (
        ONE_NAME,
        finding(
            "duplicate-hostname",
            DRIFT,
            "gpu01",
            "the running host name 'node' is used by another host too",
        ),
        CONFIRMED,
    ),
    "the interface itself": (
        NO_INTERFACE,
        finding(
            "wrong-interface",
            REPORT,
            "gpu01",
            "/etc/environment says GLOO_SOCKET_IFNAME=eno7: there is no eno7",
        ),
        CONFIRMED,
    ),
    "another interface": (
        NO_INTERFACE,
        finding(
            "wrong-interface",
            DRIFT,
            "gpu01",
            "/etc/environment says NCCL_SOCKET_IFNAME=eth9: there is no interface 'eth9' here",
        ),
        OPEN,
    ),
    "another name": (
        ONE_NAME,
        finding(
            "duplicate-hostname",
            DRIFT,
            "gpu01",
            "the running host name 'worker' is used by another host too",
        ),
        OPEN,
    ),
    "the name that was asked for": (UNRESOLVED, unresolved("gpu04", "gpu02"), CONFIRMED),
    "the name of another host": (UNRESOLVED, unresolved("gpu04", "gpu01"), OPEN),
    "names of the cluster, where a name of others was asked for": (
        UNRESOLVED.replace("gpu02", "head.example.org"),
        unresolved("gpu04", "gpu01", "gpu02"),
        OPEN,
    ),
    "a name of the cluster with a domain": (
        UNRESOLVED.replace("gpu02", "gpu02.example.org"),
        unresolved("gpu04", "gpu02"),
        CONFIRMED,
    ),
    "a peer's name that is wrong on this host": (WRONG, unresolved("gpu01", "gpu02"), CONFIRMED),
    "a third host's name that is wrong on this host": (WRONG, unresolved("gpu01", "gpu03"), OPEN),
    "this host's name that is wrong on another": (WRONG, unresolved("gpu02", "gpu01"), OPEN),
    "a line about the name of another host": (
        UNRESOLVED,
        finding(
            "hostname-unresolvable",
            DRIFT,
            "gpu02",
            "/etc/hosts line 2 contradicts the inventory: maps to 10.9.9.9, but gpu03 is 10.0.0.13",
            "10.9.9.9  gpu03 storage",
        ),
        OPEN,
    ),
    "hosts that left": (
        UNRESOLVED,
        finding("hostname-unresolvable", DRIFT, "gpu02", "/etc/hosts lists others", "gpu-left"),
        OPEN,
    ),
    "what answers for all names": (
        UNRESOLVED.replace("gpu02", "head.example.org"),
        finding("hostname-unresolvable", BLOCKED, "gpu02", "the name server 10.9.9.9 is dead"),
        CONFIRMED,
    ),
    "a wall, where the peer is no host of the cluster": (
        BY_ADDRESS.replace("10.0.0.12", "10.99.9.9"),
        wall("gpu02", "32768-60999"),
        OPEN,
    ),
    "a wall, where the peer is this host itself": (
        BY_ADDRESS.replace("10.0.0.12", "127.0.1.1"),
        wall("gpu02", "32768-60999"),
        OPEN,
    ),
    "what Open MPI was given": (
        INCLUDE,
        setting("OMPI_MCA_btl_tcp_if_include", "ens33"),
        CONFIRMED,
    ),
    "another interface of Open MPI's": (
        INCLUDE,
        setting("OMPI_MCA_btl_tcp_if_include", "eth9"),
        OPEN,
    ),
    "gloo's interface, where Open MPI's is wrong": (
        INCLUDE,
        setting("GLOO_SOCKET_IFNAME", "ens33"),
        OPEN,
    ),
    "Paddle's variables in a log of Paddle": (PADDLE, left("PADDLE_TRAINER_ID=1"), CONFIRMED),
    "Paddle's variables in a log of torch": (NO_STORE, left("PADDLE_TRAINER_ID=1"), OPEN),
    "a rank in a log of torch": (NO_STORE, left("RANK=1"), CONFIRMED),
    "a rank in a log of Paddle": (PADDLE, left("WORLD_SIZE=2"), OPEN),
    "MindSpore's variables in a log of torch": (NO_STORE, left("MS_NODE_ID=1"), OPEN),
    "interfaces of two speeds": (
        NO_INTERFACE,
        finding(
            "wrong-interface", REPORT, None, "the cluster interfaces differ in speed", "eno2: gpu01"
        ),
        OPEN,
    ),
    "a switch that hides it": (
        SHM,
        finding(
            "shm-too-small", REPORT, "gpu01", "/etc/nccl.conf sets NCCL_SHM_DISABLE=1, a switch"
        ),
        OPEN,
    ),
    "persistence mode": (
        GONE,
        finding("peer-died-timeout", REPORT, "gpu01", "persistence mode is off on 8 GPUs"),
        OPEN,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_what_explains_the_evidence_confirms(name: str) -> None:
    line, seen, status = CASES[name]
    diagnosis = diagnose_lines({"log": line.splitlines()})
    confirmations = confirm(diagnosis, plan_with(seen), HOSTS, ADDRESSES)
    by_label = {confirmation.label: confirmation for confirmation in confirmations}
    assert by_label[seen.label].status is status
    decided, first = settled(diagnosis, confirmations)
    if status is CONFIRMED:
        assert first is not None
        assert decided.label == seen.label
    else:
        assert first is None
        assert decided == diagnosis, "the log's own cause stays as it is"


@pytest.mark.parametrize(
    ("port", "status"), [("29500", REFUTED), ("29513", REFUTED), ("8118", OPEN), ("12345", OPEN)]
)
def test_a_port_that_nobody_looked_at_is_not_refuted(port: str, status: ConfirmationStatus) -> None:
    diagnosis = diagnose_lines({"log": [TAKEN.replace("29500", port)]})
    (first, *_) = confirm(diagnosis, plan_with(), HOSTS, ADDRESSES)
    assert (first.label, first.status) == ("master-port-in-use", status)
    assert any(f"sport = :{port}" in line for line in first.evidence) is (status is OPEN)


def test_what_is_of_the_job_is_not_refuted_by_its_hosts() -> None:
    (first, *_) = confirm(diagnose_lines({"log": GONE.splitlines()}), plan_with(), HOSTS)
    assert (first.label, first.status) == ("peer-died-timeout", OPEN)
    assert first.evidence[0].endswith("it may be of the job alone")


def test_what_hosts_show_goes_before_an_answer_that_only_says_elsewhere() -> None:
    alternative = Candidate(label="firewall-ports", score=SCORE, reason="what else it can be")
    vague = Diagnosis(
        label="peer-died-timeout",
        candidates=(Candidate(label="peer-died-timeout", score=0.45, reason=""), alternative),
        **sure(0.45),
    )
    dropped = finding("firewall-ports", DRIFT, "gpu01", "nftables drops what training needs")
    explanation = explain(vague, plan_with(dropped), HOSTS, "inventory.py")
    assert (explanation.diagnosis.label, explanation.diagnosis.confidence) == (
        "firewall-ports",
        "likely",
    )
    surer = vague.model_copy(update=sure(0.8))
    assert explain(surer, plan_with(dropped), HOSTS, "i").diagnosis.label == "peer-died-timeout"


def test_hosts_that_were_not_read_leave_a_cause_open() -> None:
    diagnosis = diagnose_lines({"log": [TAKEN]})
    (first, *_) = confirm(diagnosis, plan_with(), HOSTS, ADDRESSES, hosts_unread=("gpu08", "gpu09"))
    assert first.status is OPEN
    assert first.evidence[0].endswith("; not read: gpu[08-09]")
    (nobody, *_) = confirm(diagnosis, plan_with(), (), {}, hosts_unread=("gpu08",))
    assert (nobody.status, nobody.evidence) == (OPEN, ("not read: gpu08",))


def test_a_report_beside_it_does_not_push_the_logs_own_cause_aside() -> None:
    diagnosis = diagnose_lines({"log": [TAKEN]})
    assert diagnosis.label == "master-port-in-use"
    clone = finding("stale-process", REPORT, "gpu02", "2 GPUs in use", "pid 4711: 512 MiB of GPU-0")
    decided, first = settled(diagnosis, confirm(diagnosis, plan_with(clone), HOSTS, ADDRESSES))
    assert (decided.label, first) == ("master-port-in-use", None)


@given(
    st.text(max_size=200),
    st.text(max_size=200),
    st.sampled_from(sorted(FindingKind)),
    st.sampled_from(["firewall-ports", "master-port-in-use", "wrong-interface", "clock-skew"]),
)
def test_whatever_a_line_holds_it_is_compared(
    line: str, title: str, kind: FindingKind, label: str
) -> None:
    quotes = of_quotes([Quote(file="f", line=1, text=line)], frozenset(HOSTS), ADDRESSES)
    seen = finding(label, kind, None, title)
    assert isinstance(explains(seen, quotes, frozenset(HOSTS)), bool)
    nothing = Named(frozenset(), frozenset(), frozenset())
    if kind is REPORT and label != "clock-skew":
        assert not explains(seen, nothing, frozenset(HOSTS)), "nothing is named, nothing explained"


LINES = sorted({example for symptom in catalogue() for example in symptom.examples})


@given(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=4),
    st.lists(
        st.tuples(
            st.sampled_from(sorted(all_causes())),
            st.sampled_from(sorted(FindingKind)),
            st.sampled_from([*HOSTS, None]),
            st.sampled_from(LINES),
        ),
        max_size=3,
    ),
    st.sets(st.sampled_from(HOSTS)),
    st.booleans(),
)
def test_certain_is_never_beside_refuted(
    lines: list[str],
    found: list[tuple[str, FindingKind, str | None, str]],
    read: set[str],
    now: bool,
) -> None:
    findings = [finding(label, kind, host, title) for label, kind, host, title in found]
    diagnosis = diagnose_lines({"log": lines})
    told = explain(
        diagnosis, plan_with(*findings), sorted(read), "inventory.py", ADDRESSES, now=now
    )
    status = {c.label: c.status for c in told.confirmations}
    refuted = status.get(told.diagnosis.label) is REFUTED
    assert not (refuted and told.diagnosis.confidence != "possible")
    # Seen just now, what the hosts refute is not the answer, and what they leave open is not certain.
    assert not (refuted and now)
    if now and told.diagnosis.confidence == "certain" and told.diagnosis.label in status:
        assert status[told.diagnosis.label] is CONFIRMED


def test_hosts_that_are_wrong_in_the_same_way_are_cured_with_the_one_that_failed_first() -> None:
    diagnosis = diagnose_lines({"gpu01": [UNRESOLVED]})
    drifts = [unresolved("gpu01", "gpu02"), unresolved("gpu03", "gpu01")]
    other = drifts[1].model_copy(update={"remedy": "resolver"})
    for findings, hosts in (
        ([*drifts, other], ("gpu01", "gpu03")),
        ([drifts[0], other], ("gpu01",)),
    ):
        own = explain(diagnosis, plan_with(*findings), HOSTS, "lab.py").confirmations[0]
        assert (own.status, own.hosts) == (CONFIRMED, hosts)
