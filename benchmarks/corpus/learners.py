"""The last part, programs with a way of their own to meet: XGBoost, LightGBM, TensorFlow and hivemind."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.frameworks import HOLD
from benchmarks.corpus.others import SMALL, makes, of_network, of_program
from benchmarks.corpus.scenario import NAMED, A, Scenario

XGBOOST = "python train_xgboost.py --tracker {m} --worker {i}"
LIGHTGBM = "python train_lightgbm.py --machines 10.214.{net}.11:12400,10.214.{net}.12:12400"
TENSORFLOW = (
    "python train_tensorflow.py --workers 10.214.{net}.11:2222,10.214.{net}.12:2222 --index {i}"
)
HIVEMIND = "python train_hivemind.py --listen 31330"
JOIN = (
    "python train_hivemind.py --listen 31331 --join "
    "/{way}/tcp/31330/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
)


def learners() -> Iterator[Scenario]:
    """Every program, the lightest first."""
    yield from xgboost()
    yield from lightgbm()
    yield from tensorflow()
    yield from hivemind()


def xgboost() -> Iterator[Scenario]:
    """XGBoost, whose tracker is in the first worker."""
    make = makes("xgboost", "xgboost", 75)
    yield from of_program(make, XGBOOST)
    yield from of_network(make, XGBOOST, 9091)
    yield make(
        "disk",
        "disk-full",
        XGBOOST + " --save /ckpt",
        setup={"*": NAMED + "; mkdir /ckpt", A: SMALL},
    )


def lightgbm() -> Iterator[Scenario]:
    """LightGBM, which meets by a list of machines."""
    make = makes("lightgbm", "lightgbm", 100)
    yield from of_program(make, LIGHTGBM)
    yield make(
        "one-of-two",
        "rank-mismatch",
        LIGHTGBM,
        hosts=(A,),
        secondary="firewall-ports;peer-died-timeout;unknown",
    )
    yield make(
        "firewall-all",
        "healthy",  # the first host connects to the second one only
        LIGHTGBM,
        fault={A: ("firewall-nftables",)},
    )
    yield make(
        "port-taken",
        "master-port-in-use",
        LIGHTGBM,
        only={A: HOLD.replace("PORT", "12400") + LIGHTGBM},
        secondary="stale-process",
    )
    yield make(
        "not-listed",
        "wrong-interface",
        LIGHTGBM.replace("{net}.12", "{net}.99"),
        secondary="rank-mismatch;application-error;loopback-hostname",
    )


def tensorflow() -> Iterator[Scenario]:
    """TensorFlow over gRPC."""
    make = makes("tensorflow", "tensorflow", 110)
    yield from of_program(make, TENSORFLOW)
    yield make(
        "firewall-all",
        "firewall-ports",
        TENSORFLOW,
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield make(
        "port-taken",
        "master-port-in-use",
        TENSORFLOW,
        only={A: HOLD.replace("PORT", "2222") + TENSORFLOW},
        secondary="stale-process",
    )
    yield make(
        "one-of-two",
        "rank-mismatch",
        TENSORFLOW,
        hosts=(A,),
        secondary="firewall-ports;peer-died-timeout;unknown",
    )


def hivemind() -> Iterator[Scenario]:
    """hivemind's peers, which find each other by one that is known."""
    make = makes("hivemind", "hivemind", 75)
    yield make("good", "healthy", HIVEMIND, hosts=(A,), secondary="unknown;peer-died-timeout")
    yield make("raise", "application-error", HIVEMIND + " --fail raise", hosts=(A,))
    for name, label, way, second in (
        (
            "no-name",
            "hostname-unresolvable",
            "dns4/gpu77",
            "unknown;peer-died-timeout;firewall-ports",
        ),
        (
            "nobody",
            "peer-died-timeout",
            "ip4/10.214.{net}.12",
            "firewall-ports;rank-mismatch;unknown",
        ),
        (
            "unreachable",
            "network-unreachable",
            "ip4/198.51.100.9",
            "firewall-ports;unknown;peer-died-timeout",
        ),
    ):
        yield make(
            name,
            label,
            JOIN.replace("{way}", way),
            hosts=(A,),
            setup={"*": "ip route del default 2>/dev/null; true"},
            secondary=second,
        )
    yield make(
        "port-taken",
        "master-port-in-use",
        HOLD.replace("PORT", "31330") + HIVEMIND,
        hosts=(A,),
        secondary="stale-process",
    )
