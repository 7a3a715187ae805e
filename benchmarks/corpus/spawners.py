"""The fourth part: pytorch-ignite, torch's remote calls, MLX's ring and ipyparallel."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.others import SMALL, makes, of_network, of_program
from benchmarks.corpus.scenario import NAMED, A, B, Scenario

IGNITE = "python train_ignite.py --nodes {n} --node {i} --master {m}"
RPC = "python train_rpc.py --master {m} --rank {i}"
MLX = "python train_mlx.py --hosts {m}:29544,10.214.{net}.12:29544 --rank {i}"


def spawners() -> Iterator[Scenario]:
    """Every program; each is ended after less than a minute."""
    yield from ignite()
    yield from rpc()
    yield from mlx()
    yield from engines()


def ignite() -> Iterator[Scenario]:
    """pytorch-ignite's idist on two hosts, and its own spawning on one."""
    make = makes("ignite", "ignite", 35)
    yield from of_program(make, IGNITE)
    yield from of_network(make, IGNITE, 29507)
    yield make("interface", "wrong-interface", IGNITE, only={B: "GLOO_SOCKET_IFNAME=ib7 " + IGNITE})
    yield make(
        "disk",
        "disk-full",
        IGNITE,
        setup={"*": NAMED + "; " + SMALL},
        only={B: IGNITE + " --fail disk"},
    )


def rpc() -> Iterator[Scenario]:
    """Torch's remote calls over tensorpipe."""
    make = makes("rpc", "torch", 35)
    # What breaks the second worker is asked for by the first, in a call.
    here = ("rpc-good", "rpc-usage", "rpc-other-python")
    yield from (scenario for scenario in of_program(make, RPC) if scenario.name in here)
    yield make(
        "far-kill",
        "unknown",
        RPC + " --fail kill",
        secondary="host-oom;peer-died-timeout",
        alone={A: "peer-died-timeout"},
    )
    yield make(
        "far-stall",
        "peer-died-timeout",
        RPC + " --fail stall",
        secondary="application-error;unknown",
    )
    yield make(
        "far-disk",
        "disk-full",
        RPC + " --fail disk",
        setup={"*": NAMED + "; " + SMALL},
    )
    yield make("far-raise", "application-error", RPC + " --fail raise")
    yield from of_network(make, RPC, 29533)
    yield make(
        "same-number",
        "rank-mismatch",
        RPC,
        only={B: RPC.replace("{i}", "0")},
        secondary="master-port-in-use",
    )


def mlx() -> Iterator[Scenario]:
    """MLX's ring over sockets."""
    make = makes("mlx", "mlx", 30)
    yield from of_program(make, MLX)
    yield from of_network(make, MLX, 29544)
    yield make(
        "disk",
        "disk-full",
        MLX,
        setup={"*": NAMED + "; " + SMALL},
        only={B: MLX + " --fail disk"},
    )
    yield make(
        "own-address",
        "wrong-interface",
        MLX,
        only={B: MLX.replace("10.214.{net}.12", "203.0.113.9")},
        secondary="application-error;rank-mismatch",
    )


def engines() -> Iterator[Scenario]:
    """ipyparallel's engines on one host."""

    def one(name: str, label: str, words: str = "", **more: object) -> Scenario:
        settings = {"secondary": "", "setup": {"*": NAMED}, "seconds": 40, **more}
        return Scenario(
            f"ipyparallel-{name}",
            label,
            f"python train_ipyparallel.py {words}",
            needs="ipyparallel",
            **settings,  # type: ignore[arg-type]
        )

    yield one("good", "healthy")
    yield one("raise", "application-error", "--fail raise")
    yield one("kill", "unknown", "--fail kill", secondary="host-oom;peer-died-timeout")
    yield one("stall", "unknown", "--fail stall", secondary="peer-died-timeout;application-error")
    yield one("disk", "disk-full", "--fail disk", setup={"*": NAMED + "; " + SMALL})
    yield one("data", "storage-fault", "--fail data", secondary="application-error")
    yield one("module", "application-error", "--fail module", secondary="missing-library")
    yield one(
        "home-full",
        "disk-full",
        setup={
            "*": NAMED + "; mkdir -p .ipython; mount -t tmpfs -o size=4k,nr_inodes=2 none .ipython"
        },
        secondary="storage-fault",
    )
