"""Faults of what a session may use, and of what happens when it ends."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, LIKE_A_FIREWALL, NEXT_BOOT, REPAIRED, by_hand, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host


@fault(
    "small-memlock",
    "a session may lock 64 KiB of memory and open 512 files, root's too",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the host has neither GPU nor RDMA, and 512 files are enough for its ranks",
)
def small_memlock(host: Host) -> None:
    lines = "".join(
        f"{domain} - {item}\n" for domain in ("*", "root") for item in ("memlock 64", "nofile 512")
    )
    host.must(["mkdir", "-p", "/etc/security/limits.d"])
    host.write("/etc/security/limits.d/50-site.conf", lines.encode())


@fault(
    "remove-ipc",
    "logind deletes a user's shared memory at the user's last logout (RemoveIPC=yes)",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the jobs are root's, whose memory stays",
)
def remove_ipc(host: Host) -> None:
    host.must(["mkdir", "-p", "/etc/systemd/logind.conf.d"])
    host.write("/etc/systemd/logind.conf.d/50-site.conf", b"[Login]\nRemoveIPC=yes\n")
    host.must(["systemctl", "kill", "--signal=HUP", "systemd-logind.service"])


@fault(
    "little-cpu-time",
    "a process of root's is killed after a minute of CPU time",
    repair=by_hand("Remove line"),
    log=no_log("a job runs as before for a minute; then the shell says CPU time limit exceeded"),
)
def little_cpu_time(host: Host) -> None:
    host.must(["mkdir", "-p", "/etc/security/limits.d"])
    host.write("/etc/security/limits.d/60-site.conf", b"root - cpu 1\n")


@fault(
    "shm-for-root-only",
    "only root can make files in /dev/shm; ends with a reboot",
    repair=by_hand("chmod 1777 /dev/shm"),
    log=no_log("the jobs are root's, who may write there"),
)
def shm_for_root_only(host: Host) -> None:
    host.must(["chmod", "755", "/dev/shm"])  # noqa: S108 - the mount point, no file in it


@fault(
    "null-is-a-file",
    "somebody's program has replaced /dev/null by a file of its own; ends with a reboot",
    repair=by_hand("mknod -m 666 /dev/null c 1 3"),
    log=no_log("the jobs are root's, who may write there"),
)
def null_is_a_file(host: Host) -> None:
    host.must("cd /dev && echo once >.null && chmod 600 .null && mv -f .null null")


@fault(
    "short-queue-of-connections",
    "few new connections may wait, and are answered once; ends with a reboot",
    repair=REPAIRED,  # told, and no obstacle
    log=no_log("a job of two hosts makes too few connections at a time"),
)
def short_queue_of_connections(host: Host) -> None:
    host.must(
        "sysctl -qw net.ipv4.tcp_max_syn_backlog=4 net.ipv4.tcp_synack_retries=0 net.ipv4.tcp_syncookies=0"
    )


@fault(
    "small-buffers",
    "TCP takes and sends 4 KiB at once; ends with a reboot",
    repair=by_hand("net.ipv4.tcp_rmem"),
    log=LIKE_A_FIREWALL,
)
def small_buffers(host: Host) -> None:
    sizes = "'4096 4096 4096'"
    host.must(f"sysctl -qw net.ipv4.tcp_rmem={sizes} net.ipv4.tcp_wmem={sizes}")


def _set_now_and_at_boot(host: Host, *settings: str) -> None:
    """Have a file of settings, and what it says in force."""
    path = "/etc/sysctl.d/60-site.conf"
    host.write(path, "".join(f"{setting}\n" for setting in settings).encode())
    host.must(["sysctl", "-qp", path])


@fault(
    "small-segments",
    "a file of settings has TCP begin with segments of 48 bytes (tcp_base_mss, tcp_mtu_probing)",
    repair=by_hand("net.ipv4.tcp_base_mss"),
    log=no_log("a job of two hosts is slow, and says nothing"),
)
def small_segments(host: Host) -> None:
    _set_now_and_at_boot(host, "net.ipv4.tcp_base_mss = 48", "net.ipv4.tcp_mtu_probing = 2")


@fault(
    "fixed-window",
    "a file of settings has TCP take 4 KiB at once, and never more (tcp_moderate_rcvbuf)",
    repair=by_hand("net.ipv4.tcp_moderate_rcvbuf"),
    log=no_log("a job of two hosts is slow, and says nothing"),
)
def fixed_window(host: Host) -> None:
    sizes = "net.ipv4.tcp_rmem = 4096 4096 6291456"
    _set_now_and_at_boot(host, sizes, "net.ipv4.tcp_moderate_rcvbuf = 0")


@fault(
    "boots-with-long-segments",
    "a file of settings has TCP send segments that no interface takes, from the next boot on",
    repair=by_hand("net.ipv4.tcp_min_snd_mss"),
    log=NEXT_BOOT,
)
def boots_with_long_segments(host: Host) -> None:
    text = b"net.ipv4.tcp_min_snd_mss = 9000\nnet.ipv4.tcp_notsent_lowat = 0\n"
    host.write("/etc/sysctl.d/60-site.conf", text)
