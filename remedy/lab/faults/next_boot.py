"""Faults of the next boot: the host is right now, and its files make something else of it then."""

from __future__ import annotations

from remedy.lab.fault import NEXT_BOOT, REPAIRED, by_hand
from remedy.lab.faults import fault
from remedy.lab.faults.firewall import (
    firewall_firewalld,
    firewall_iptables,
    firewall_nftables,
    firewall_ufw,
)
from remedy.lab.host import Host

_UNIT = """\
[Unit]
Description=Sets up this host's network by hand
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/rc.local
[Install]
WantedBy=multi-user.target
"""


@fault(
    "boots-with-other-ports",
    "a file gives new sockets other ports at the next boot, a launcher's among them",
    repair=REPAIRED,
    log=NEXT_BOOT,
)
def boots_with_other_ports(host: Host) -> None:
    host.write("/etc/sysctl.d/99-ports.conf", b"net.ipv4.ip_local_port_range = 29000 31000\n")


@fault(
    "boots-without-a-peer",
    "a script drops what goes to the first peer, from the next boot on",
    repair=by_hand("Remove that route"),
    log=NEXT_BOOT,
)
def boots_without_a_peer(host: Host) -> None:
    peer = host.peers[0].cluster_address
    host.write("/etc/rc.local", f"#!/bin/sh\nip route add blackhole {peer}/32\n".encode())
    host.write("/etc/systemd/system/by-hand.service", _UNIT.encode())
    host.must("systemctl enable --quiet by-hand")


@fault(
    "boots-into-a-script",
    "a script drops all that comes in but ssh, from the next boot on",
    repair=by_hand("rc.local"),
    log=NEXT_BOOT,
)
def boots_into_a_script(host: Host) -> None:
    script = "iptables -A INPUT -p tcp --dport 22 -j ACCEPT\niptables -P INPUT DROP\n"
    host.write("/etc/rc.local", f"#!/bin/sh\n{script}".encode())
    host.must(["chmod", "755", "/etc/rc.local"])


@fault(
    "boots-without-ssh",
    "sshd runs, and is not started at the next boot",
    repair=by_hand("enable ssh"),
    log=NEXT_BOOT,
)
def boots_without_ssh(host: Host) -> None:
    host.must("systemctl disable --quiet ssh")


@fault(
    "boots-with-another-name",
    "a kernel setting gives the host another name at the next boot",
    repair=by_hand("/etc/hostname"),
    log=NEXT_BOOT,
)
def boots_with_another_name(host: Host) -> None:
    host.write("/etc/sysctl.d/98-name.conf", b"kernel.hostname = node\n")


@fault(
    "boots-into-nftables",
    "nftables will let ssh in at boot, nothing else; nothing is in force",
    repair=REPAIRED,
    log=NEXT_BOOT,
)
def boots_into_nftables(host: Host) -> None:
    firewall_nftables(host)
    host.must("nft flush ruleset")


@fault(
    "boots-into-iptables",
    "saved rules reject peers; those in force let the cluster in, by hand",
    repair=REPAIRED,
    log=NEXT_BOOT,
)
def boots_into_iptables(host: Host) -> None:
    firewall_iptables(host)
    host.must(f"iptables-nft -I INPUT 1 -s {host.lab.cluster} -j ACCEPT")


@fault(
    "boots-into-ufw",
    "ufw is enabled and lets ssh in, nothing else; its rules were flushed",
    repair=REPAIRED,
    log=NEXT_BOOT,
)
def boots_into_ufw(host: Host) -> None:
    firewall_ufw(host)
    host.must("/lib/ufw/ufw-init force-stop; iptables-nft -F; iptables-nft -X; true")


@fault(
    "boots-into-firewalld",
    "firewalld is enabled and stopped",
    repair=REPAIRED,
    log=NEXT_BOOT,
)
def boots_into_firewalld(host: Host) -> None:
    firewall_firewalld(host)
    host.must("systemctl stop firewalld")


@fault(
    "boots-into-rescue",
    "the default target is rescue.target, which starts no services",
    repair=by_hand("set-default"),
    log=NEXT_BOOT,
)
def boots_into_rescue(host: Host) -> None:
    host.must(["systemctl", "--no-reload", "--quiet", "set-default", "rescue.target"])


@fault(
    "boots-with-ssh-masked",
    "sshd runs, and its unit is masked",
    repair=by_hand("unmask ssh"),
    log=NEXT_BOOT,
)
def boots_with_ssh_masked(host: Host) -> None:
    host.must(["systemctl", "--quiet", "mask", "ssh.service"])


@fault(
    "boots-without-a-disk",
    "/etc/fstab names a disk that is not there, without nofail",
    repair=by_hand("/etc/fstab:"),
    log=NEXT_BOOT,
)
def boots_without_a_disk(host: Host) -> None:
    host.write("/etc/fstab", b"UUID=0b9e7f3c-1111-4222-8333-444455556666 /data ext4 defaults 0 2\n")


@fault(
    "boots-into-nothing",
    "the default target leads to a file that is not there",
    repair=by_hand("its default target is not there"),
    log=NEXT_BOOT,
)
def boots_into_nothing(host: Host) -> None:
    host.must("ln -sfn /usr/lib/systemd/system/gone.target /etc/systemd/system/default.target")


@fault(
    "boots-without-services",
    "multi-user.target, which starts the services, is masked",
    repair=by_hand("multi-user.target leads to /dev/null"),
    log=NEXT_BOOT,
)
def boots_without_services(host: Host) -> None:
    host.must("ln -sfn /dev/null /etc/systemd/system/multi-user.target")


@fault(
    "boots-with-rescue-line",
    "the boot loader starts the kernel with systemd.unit=rescue.target",
    repair=by_hand("systemd.unit=rescue.target"),
    log=NEXT_BOOT,
)
def boots_with_rescue_line(host: Host) -> None:
    host.must("mkdir -p /boot/grub")
    line = "\tlinux /boot/vmlinuz root=UUID=1 ro quiet systemd.unit=rescue.target\n"
    host.write("/boot/grub/grub.cfg", f"menuentry 'Linux' {{\n{line}}}\n".encode())


@fault(
    "boots-into-a-crontab",
    "root's own crontab drops all that comes in, from the next boot on",
    repair=by_hand("crontabs/root"),
    log=NEXT_BOOT,
)
def boots_into_a_crontab(host: Host) -> None:
    host.must("mkdir -p /var/spool/cron/crontabs")
    host.write("/var/spool/cron/crontabs/root", b"@reboot /usr/sbin/iptables -P INPUT DROP\n")


@fault(
    "boots-with-small-packets",
    "a script gives the cluster interface an MTU of 1400 at boot",
    repair=by_hand("mtu 1400"),
    log=NEXT_BOOT,
)
def boots_with_small_packets(host: Host) -> None:
    line = f"ip link set dev {host.record.cluster_interface} mtu 1400\n"
    host.write("/etc/rc.local", f"#!/bin/sh\n{line}".encode())
    host.must(["chmod", "755", "/etc/rc.local"])


@fault(
    "boots-into-docker",
    "Docker's bridge takes the network of the cluster when dockerd starts again",
    repair=by_hand("bip"),
    log=NEXT_BOOT,
)
def boots_into_docker(host: Host) -> None:
    address = host.lab.cluster.replace(".0/", ".254/")
    host.must("mkdir -p /etc/docker")
    host.write("/etc/docker/daemon.json", f'{{"bip": "{address}"}}\n'.encode())
