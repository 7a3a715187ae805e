"""Who the host says it is: its names, its ids, its boot and what it runs on."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.probe.frames import NoAnswerError, Sections, first_line
from remedy.values import Record


class Identity(Record):
    """The host as it names itself.

    ``static_name`` is /etc/hostname's, "" where there is none; ``transient_name`` the kernel's (uname -n).
    ``booted_at`` is the epoch second of the start of PID 1, give or take one, 0 where it is not known.
    ``virtualization`` is systemd-detect-virt's word ("none", "kvm", "docker", ...), "" where it is not known;
    ``hardware`` is vendor and product of the machine. Sources: hostname(5), hostnamectl(1), machine-id(5),
    os-release(5).
    """

    static_name: str
    transient_name: str
    machine_id: str
    boot_id: str
    booted_at: int
    os_id: str
    kernel: str
    virtualization: str
    hardware: str = ""


def parse_identity(sections: Sections, booted_at: int, files: Mapping[str, str]) -> Identity:
    """Read who the host says it is.

    Args:
        sections: the probe's.
        booted_at: epoch second of the start of PID 1.
        files: text of /etc/hostname, /etc/machine-id and /etc/os-release, "" where there is none.
    """
    lines = sections.lines("kernel")
    release = _assignments(files["/etc/os-release"])
    static = [line.strip() for line in files["/etc/hostname"].splitlines()]
    return Identity(
        static_name=next((line for line in static if line and not line.startswith("#")), ""),
        transient_name=first_line(lines, "/proc/sys/kernel/hostname"),
        machine_id=files["/etc/machine-id"].strip(),
        boot_id=first_line(lines, "/proc/sys/kernel/random/boot_id"),
        booted_at=booted_at,
        os_id=release.get("ID", ""),
        kernel=first_line(lines, "/proc/sys/kernel/osrelease"),
        virtualization=_virtualization(sections),
        hardware=" ".join(
            filter(
                None,
                (
                    first_line(lines, "/sys/class/dmi/id/sys_vendor"),
                    first_line(lines, "/sys/class/dmi/id/product_name"),
                ),
            )
        ),
    )


def _virtualization(sections: Sections) -> str:
    try:
        return sections.text("virtualization").strip()
    except NoAnswerError:
        return ""


def _assignments(text: str) -> dict[str, str]:
    pairs = (line.strip().partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.strip("\"'") for name, equals, value in pairs if equals}
