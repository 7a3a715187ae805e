"""Faults of the environment that jobs get."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, REPAIRED, JobLog, by_hand, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host

# No host of a lab has an interface of this name.
NOWHERE = "eth9"
# Nobody's: it must never leave the host.
TOKEN = "hf_secretOfNobody"  # noqa: S105


def _append(host: Host, path: str, lines: bytes) -> None:
    """Add lines to a file, once.

    Args:
        host: where.
        path: the file, which need not be there.
        lines: whole lines.
    """
    host.must(["mkdir", "-p", path.rpartition("/")[0]])
    host.must(["touch", path])
    content = host.read(path)
    if lines not in content:
        host.write(path, content + lines)


@fault(
    "wrong-socket-ifname",
    "/etc/environment names an interface for gloo and NCCL that does not exist",
    repair=REPAIRED,
    log=JobLog("wrong-interface"),
)
def wrong_socket_ifname(host: Host) -> None:
    lines = f"# from the old cluster\nGLOO_SOCKET_IFNAME={NOWHERE}\nNCCL_SOCKET_IFNAME={NOWHERE}\n"
    _append(host, "/etc/environment", lines.encode())


@fault(
    "debug-variables-left",
    "debug switches were left in /etc/environment, /etc/nccl.conf and .bashrc",
    repair=REPAIRED,
    log=HEALTHY,
)
def debug_variables_left(host: Host) -> None:
    _append(host, "/etc/environment", b"NCCL_P2P_DISABLE=1\n")
    _append(host, "/etc/nccl.conf", b"# try without RDMA\nNCCL_IB_DISABLE=1\n")
    _append(host, "/root/.bashrc", b"export NCCL_SHM_DISABLE=1\n")


@fault(
    "user-nccl-conf",
    "root's ~/.nccl.conf, which beats /etc/nccl.conf, names a missing interface",
    repair=by_hand("environment.user_files"),
    log=HEALTHY,
)
def user_nccl_conf(host: Host) -> None:
    _append(host, "/root/.nccl.conf", f"NCCL_SOCKET_IFNAME={NOWHERE}\n".encode())


@fault(
    "wrong-device-of-ucx-and-hccl",
    "/etc/environment names an interface for UCX and HCCL that does not exist",
    repair=REPAIRED,
    log=no_log("gloo reads neither"),
)
def wrong_device_of_ucx_and_hccl(host: Host) -> None:
    lines = f"UCX_NET_DEVICES={NOWHERE}\nHCCL_SOCKET_IFNAME={NOWHERE}\n"
    _append(host, "/etc/environment", lines.encode())


@fault(
    "wrong-ifname-of-services",
    "systemd gives services a missing interface: its own default, a unit's file beside a token, environment.d",
    repair=by_hand("Correct or remove line"),
    log=no_log("only services of systemd have it"),
)
def wrong_ifname_of_services(host: Host) -> None:
    line = f"[Manager]\nDefaultEnvironment=LANG=C NCCL_SOCKET_IFNAME={NOWHERE}\n"
    _append(host, "/etc/systemd/system.conf.d/10-site.conf", line.encode())
    unit = b"[Service]\nEnvironmentFile=-/etc/site/jobs.env\n"
    _append(host, "/etc/systemd/system/slurmd.service.d/10-site.conf", unit)
    jobs = f"HF_TOKEN={TOKEN}\nGLOO_SOCKET_IFNAME={NOWHERE} HF_TOKEN={TOKEN}\nTP_SOCKET_IFNAME={NOWHERE}\n"
    _append(host, "/etc/site/jobs.env", jobs.encode())
    _append(host, "/etc/environment.d/50-site.conf", f"GLOO_SOCKET_IFNAME={NOWHERE}\n".encode())


@fault(
    "wrong-ifname-of-sessions",
    "PAM, sshd and the start-up files of zsh and csh name an interface that does not exist",
    repair=by_hand("Correct or remove line"),
    log=no_log("its words are those of lab-wrong-socket-ifname"),
)
def wrong_ifname_of_sessions(host: Host) -> None:
    _append(host, "/etc/security/pam_env.conf", f"GLOO_SOCKET_IFNAME\tDEFAULT={NOWHERE}\n".encode())
    _append(
        host, "/etc/ssh/sshd_config.d/10-site.conf", f"SetEnv TP_SOCKET_IFNAME={NOWHERE}\n".encode()
    )
    _append(host, "/etc/zsh/zshenv", f"export NCCL_SOCKET_IFNAME={NOWHERE}\n".encode())
    _append(host, "/etc/csh.cshrc", f"setenv NCCL_SOCKET_IFNAME {NOWHERE}\n".encode())
    host.must(["systemctl", "reload", "ssh"])


@fault(
    "wrong-ifname-of-containers",
    "podman's defaults, a task prolog of Slurm and a module name an interface that does not exist",
    repair=by_hand("Correct or remove line"),
    log=no_log("only containers, tasks of Slurm and who loads the module have it"),
)
def wrong_ifname_of_containers(host: Host) -> None:
    text = f'[containers]\nenv = [\n  "TERM=xterm",\n  "NCCL_SOCKET_IFNAME={NOWHERE}",\n]\n'
    _append(host, "/etc/containers/containers.conf.d/10-site.conf", text.encode())
    _append(host, "/etc/slurm/slurm.conf", b"TaskProlog=/opt/site/task.sh\n")
    prolog = f'#!/bin/sh\necho "export GLOO_SOCKET_IFNAME={NOWHERE}"\n'
    _append(host, "/opt/site/task.sh", prolog.encode())
    _append(host, "/etc/modulefiles/nccl/2.27", f"setenv NCCL_SOCKET_IFNAME {NOWHERE}\n".encode())


@fault(
    "wrong-ifname-of-sudo",
    "sudo and an environment generator of systemd give commands and services an interface that does not exist",
    repair=by_hand("Correct or remove line"),
    log=no_log("only what sudo starts and services of systemd have it"),
)
def wrong_ifname_of_sudo(host: Host) -> None:
    line = 'Defaults:trainer env_file="/etc/site/sudo.env", !lecture\n'
    _append(host, "/etc/sudoers.d/90-site", line.encode())
    host.must(["chmod", "440", "/etc/sudoers.d/90-site"])
    jobs = f"export HF_TOKEN={TOKEN}\nexport GLOO_SOCKET_IFNAME='{NOWHERE}'\n"
    _append(host, "/etc/site/sudo.env", jobs.encode())
    generator = "/etc/systemd/system-environment-generators/50-site"
    _append(host, generator, f"#!/bin/sh\necho TP_SOCKET_IFNAME={NOWHERE}\n".encode())
    host.must(["chmod", "755", generator])


@fault(
    "wrong-ifname-of-job-user",
    "start-up files of a user who runs jobs, and is not who logs in, name an interface that does not exist",
    repair=REPAIRED,
    log=no_log("its words are those of lab-wrong-socket-ifname"),
    harmless="the settings name no user who runs the jobs (cluster.user)",
)
def wrong_ifname_of_job_user(host: Host) -> None:
    home = "/home/trainer"
    for name, line in (
        (".bashrc", f"export NCCL_SOCKET_IFNAME={NOWHERE}\n"),
        (".bash_profile", f"export GLOO_SOCKET_IFNAME={NOWHERE}\n"),
        (".profile", "export RANK=1\n"),
        (".pam_environment", f"TP_SOCKET_IFNAME DEFAULT={NOWHERE}\n"),
    ):
        _append(host, f"{home}/{name}", line.encode())
        host.must(["chown", "trainer:", f"{home}/{name}"])


@fault(
    "old-environment-of-slurmd",
    "slurmd and systemd itself still have a missing interface, which no file sets any more",
    repair=by_hand("systemctl"),
    log=no_log("only what slurmd starts has it, and that is no slurmd"),
)
def old_environment_of_slurmd(host: Host) -> None:
    host.must(["systemctl", "set-environment", f"GLOO_SOCKET_IFNAME={NOWHERE}"])
    host.must(["cp", "/bin/sleep", "/usr/local/sbin/slurmd"])
    host.must(
        f"systemctl is-active -q slurmd-stand-in || systemd-run -q --unit slurmd-stand-in "
        f"-E NCCL_SOCKET_IFNAME={NOWHERE} /usr/local/sbin/slurmd infinity"
    )


@fault(
    "stale-launch-variables",
    "/etc/environment still gives sessions the rank and the endpoints of an old job",
    repair=REPAIRED,
    log=no_log("all ranks wait, and no launcher prints a word"),
)
def stale_launch_variables(host: Host) -> None:
    lines = (
        "# job 4711\nPADDLE_TRAINER_ID=1\nPADDLE_TRAINERS_NUM=2\n"
        "PADDLE_TRAINER_ENDPOINTS=10.9.9.8:6170,10.9.9.9:6170\nPADDLE_CURRENT_ENDPOINT=10.9.9.9:6170\n"
        "MASTER_ADDR=10.9.9.8\nRANK=1\nWORLD_SIZE=2\nPET_RDZV_BACKEND=etcd\n"
    )
    _append(host, "/etc/environment", lines.encode())


@fault(
    "wrong-mpi-interface",
    "/etc/environment names an interface for Open MPI that does not exist",
    repair=REPAIRED,
    log=no_log("its words are those of mpi-interface.log"),
)
def wrong_mpi_interface(host: Host) -> None:
    lines = f"OMPI_MCA_btl_tcp_if_include={NOWHERE}\n"
    _append(host, "/etc/environment", lines.encode())


@fault(
    "default-ifname-of-logins",
    "a start-up file of shells gives jobs a missing interface where nothing else says one",
    repair=by_hand("/etc/profile.d/site.sh:1"),
    log=no_log("its words are those of lab-wrong-socket-ifname"),
)
def default_ifname_of_logins(host: Host) -> None:
    line = f': "${{NCCL_SOCKET_IFNAME:={NOWHERE}}}"\nexport NCCL_SOCKET_IFNAME\n'
    _append(host, "/etc/profile.d/site.sh", line.encode())


@fault(
    "little-memory-of-logins",
    "a start-up file of shells leaves a job 60 MB of memory",
    repair=by_hand("ulimit -v 60000"),
    log=no_log("its words are those of little memory, which other logs hold"),
)
def little_memory_of_logins(host: Host) -> None:
    _append(host, "/etc/profile.d/limits.sh", b"ulimit -v 60000\n")


@fault(
    "settings-elsewhere",
    "/etc/environment has NCCL and Open MPI read files of settings below /opt",
    repair=REPAIRED,  # told, and no obstacle
    log=no_log("what these files say to a job is the site's affair"),
)
def settings_elsewhere(host: Host) -> None:
    path = "/opt/site/nccl.conf"
    host.must(["mkdir", "-p", "/opt/site"])
    host.write(path, f"NCCL_SOCKET_IFNAME={NOWHERE}\n".encode())
    lines = f"NCCL_CONF_FILE={path}\nOMPI_MCA_mca_base_param_files=/opt/site/mca.conf\n"
    _append(host, "/etc/environment", lines.encode())


@fault(
    "preloaded-library",
    "each program of the host loads a library first (/etc/ld.so.preload)",
    repair=by_hand("ld.so.preload"),
    log=no_log("what the library does to a job is its own affair"),
)
def preloaded_library(host: Host) -> None:
    library = "/usr/local/lib/libsite.so"
    host.must(f"[ -s {library} ] || cp $(find /usr/lib -name 'libdl.so.2' | head -1) {library}")
    host.write("/etc/ld.so.preload", f"{library}\n".encode())
