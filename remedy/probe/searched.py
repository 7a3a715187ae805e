"""The files of which the probe takes only lines, and what those lines have in them.

Lists that are handed to the script, as those of ``sources``; paths take the patterns of the shell.
"""

from __future__ import annotations

from collections.abc import Iterable

SCAN_FILES = (
    # Shells (bash(1) INVOCATION, zsh(1) STARTUP/SHUTDOWN FILES, tcsh(1), fish(1))
    "/etc/profile",
    "/etc/profile.local",
    "/etc/profile.d/*.sh",
    "/etc/profile.d/*.csh",
    "/etc/profile.d/sh.local",
    "/etc/bash.bashrc",
    "/etc/bash.bashrc.local",
    "/etc/bashrc",
    "/etc/zshenv",
    "/etc/zprofile",
    "/etc/zshrc",
    "/etc/zlogin",
    "/etc/zsh/zshenv",
    "/etc/zsh/zprofile",
    "/etc/zsh/zshrc",
    "/etc/zsh/zlogin",
    "/etc/csh.cshrc",
    "/etc/csh.login",
    "/etc/fish/config.fish",
    "/etc/fish/conf.d/*.fish",
    # PAM (pam_env(8)) and cron(8)
    "/etc/security/pam_env.conf",
    "/etc/pam.d/*",
    "/etc/default/locale",
    "/etc/default/ssh",
    "/etc/sysconfig/sshd",
    "/etc/crypto-policies/back-ends/opensshserver.config",
    # sudoers(5), doas.conf(5): what a command gets that is started as another user
    "/etc/sudoers",
    "/etc/sudoers.d/*",
    "/usr/etc/sudoers",
    "/usr/etc/sudoers.d/*",
    "/etc/doas.conf",
    "/etc/doas.d/*.conf",
    "/etc/crontab",
    "/etc/cron.d/*",
    "/var/spool/cron/*",
    "/var/spool/cron/crontabs/*",
    "/var/spool/cron/tabs/*",
    # systemd: environment.d(5), systemd-system.conf(5), systemd.exec(5)
    "/etc/environment.d/*.conf",
    "/run/environment.d/*.conf",
    "/usr/local/lib/environment.d/*.conf",
    "/usr/lib/environment.d/*.conf",
    "/etc/systemd/system.conf",
    "/etc/systemd/user.conf",
    "/etc/systemd/system.conf.d/*.conf",
    "/etc/systemd/user.conf.d/*.conf",
    "/run/systemd/system.conf.d/*.conf",
    "/run/systemd/user.conf.d/*.conf",
    "/usr/lib/systemd/system.conf.d/*.conf",
    "/usr/lib/systemd/user.conf.d/*.conf",
    "/etc/systemd/system/*.service",
    "/etc/systemd/system/*.service.d/*.conf",
    "/run/systemd/system/*.service",
    "/run/systemd/system/*.service.d/*.conf",
    "/usr/local/lib/systemd/system/*.service",
    "/etc/systemd/user/*.service",
    "/etc/systemd/user/*.service.d/*.conf",
    # Scripts that print variables (systemd.environment-generator(7))
    "/etc/systemd/system-environment-generators/*",
    "/etc/systemd/user-environment-generators/*",
    "/usr/local/lib/systemd/system-environment-generators/*",
    "/usr/local/lib/systemd/user-environment-generators/*",
    # Drop-ins of a whole type of units (systemd.unit(5)); that of /etc/systemd/system stands below
    "/etc/systemd/user/service.d/*.conf",
    "/run/systemd/system/service.d/*.conf",
    "/usr/local/lib/systemd/system/service.d/*.conf",
    "/usr/lib/systemd/system/service.d/*.conf",
    "/usr/lib/systemd/system/slurmd.service",
    "/usr/lib/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service.d/*.conf",
    "/usr/lib/systemd/system/*.service.d/*.conf",
    # What systemd lets the processes of units do in the network (systemd.resource-control(5))
    "/etc/systemd/system/*.slice",
    "/etc/systemd/system/*slice.d/*.conf",
    "/etc/systemd/system/*scope.d/*.conf",
    "/etc/systemd/system/service.d/*.conf",
    "/etc/systemd/system.control/*.d/*.conf",
    "/run/systemd/system/*.slice",
    "/run/systemd/system/*slice.d/*.conf",
    "/run/systemd/system/*scope.d/*.conf",
    "/run/systemd/system.control/*.d/*.conf",
    "/usr/lib/systemd/system/*.slice",
    "/usr/lib/systemd/system/*slice.d/*.conf",
    "/usr/lib/systemd/system/ssh.service",
    "/usr/lib/systemd/system/sshd.service",
    "/etc/default/slurmd",
    "/etc/default/kubelet",
    "/etc/sysconfig/slurmd",
    "/etc/sysconfig/kubelet",
    "/etc/supervisor/*.conf",
    "/etc/supervisor/conf.d/*.conf",
    "/etc/supervisord.d/*.ini",
    # Containers: what every container gets
    "/etc/containers/containers.conf",
    "/etc/containers/containers.conf.d/*.conf",
    "/usr/share/containers/containers.conf",
    "/etc/crio/crio.conf",
    "/etc/crio/crio.conf.d/*",
    "/etc/nvidia-container-runtime/config.toml",
    "/etc/cdi/*.yaml",
    "/etc/cdi/*.json",
    "/run/cdi/*.yaml",
    "/etc/enroot/environ.d/*.env",
    "/var/spool/pbs/pbs_environment",
    # Environment modules, conda
    "/etc/modulefiles/*",
    "/etc/modulefiles/*/*",
    "/usr/share/modulefiles/*",
    "/usr/share/modulefiles/*/*",
    "/opt/modulefiles/*",
    "/opt/modulefiles/*/*",
    "/opt/conda/etc/conda/activate.d/*.sh",
    "/opt/conda/envs/*/etc/conda/activate.d/*.sh",
    "/opt/conda/conda-meta/state",
    "/opt/conda/envs/*/conda-meta/state",
    # Slurm (prolog_epilog.html)
    "/etc/slurm/*rolog*",
    "/etc/slurm/prolog.d/*",
    "/etc/slurm-llnl/*rolog*",
    "/etc/cloud/cloud.cfg",
    "/etc/cloud/cloud.cfg.d/*.cfg",
    "/var/lib/cloud/instance/cloud-config.txt",
    "/etc/ssh/sshd_config",
    "/etc/ssh/sshd_config.d/*.conf",
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    # What the next boot makes of the network, the kernel's command line and its modules
    "/etc/netplan/*.yaml",
    "/etc/network/interfaces",
    "/etc/network/interfaces.d/*",
    "/etc/network/if-*.d/*",
    "/etc/systemd/network/*",
    "/etc/NetworkManager/system-connections/*",
    "/etc/NetworkManager/dispatcher.d/*",
    "/etc/NetworkManager/dispatcher.d/*.d/*",
    "/etc/sysconfig/network-scripts/ifcfg-*",
    "/etc/sysconfig/network-scripts/route-*",
    "/etc/sysconfig/network-scripts/rule-*",
    "/etc/networkd-dispatcher/*.d/*",
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
    "/etc/init.d/boot.local",
    "/etc/dhcp/dhclient-*-hooks.d/*",
    "/etc/ufw/before.init",
    "/etc/ufw/after.init",
    "/etc/default/grub",
    "/etc/default/grub.d/*.cfg",
    "/boot/grub/grub.cfg",
    "/boot/grub2/grub.cfg",
    "/boot/loader/entries/*.conf",
    "/etc/modprobe.d/*.conf",
    "/etc/tmpfiles.d/*.conf",
    "/usr/local/lib/tmpfiles.d/*.conf",
    "/usr/lib/tmpfiles.d/*.conf",
    "/etc/udev/rules.d/*.rules",
    "/usr/local/lib/udev/rules.d/*.rules",
)
"""Files that are only searched, line by line: what else they hold (credentials, say) stays on the host."""

SCAN_HOME_FILES = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".bash_aliases",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".zlogin",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".config/fish/config.fish",
    ".config/fish/conf.d/*.fish",
    ".pam_environment",
    ".ssh/environment",
    ".ssh/rc",
    ".ssh/authorized_keys",
    ".config/environment.d/*.conf",
    ".config/systemd/user.conf",
    ".config/systemd/user/*.service",
    ".config/systemd/user/*.service.d/*.conf",
    ".config/containers/containers.conf",
    "miniconda3/etc/conda/activate.d/*.sh",
    "miniconda3/envs/*/etc/conda/activate.d/*.sh",
    "miniforge3/etc/conda/activate.d/*.sh",
    "miniforge3/envs/*/etc/conda/activate.d/*.sh",
    "modulefiles/*",
    "privatemodules/*",
)


def any_of(words: Iterable[str]) -> str:
    """Return a regular expression for any of these words, in which each beginning stands once.

    >>> any_of(["RANK", "RANKS", "NODE_RANK"])
    '(NODE_RANK|RANK(S)?)'
    """
    by_letter: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        by_letter.setdefault(word[:1], []).append(word[1:])
    ends = by_letter.pop("", None) is not None
    branches = [
        letter + (any_of(rest) if len(rest) > 1 else rest[0]) for letter, rest in by_letter.items()
    ]
    either = branches[0] if len(branches) == 1 and not ends else f"({'|'.join(branches)})"
    return f"{either}?" if ends else either


_FAMILIES = any_of(
    (
        *(
            "NCCL",
            "TORCH_NCCL",
            "TORCH_FR",
            "TORCH_GLOO",
            "TORCH_DISTRIBUTED",
            "GLOO",
            "TP",
            "HCCL",
            "HCCN",
        ),
        *(
            "MS",
            "PADDLE",
            "FLAGS",
            "OMPI",
            "PMIX",
            "PRTE",
            "UCX",
            "OMP",
            "CUDA",
            "RANK",
            "MASTER",
            "SLURM",
        ),
        *("PMI", "TORCHELASTIC", "PET", "HOROVOD", "JAX"),
    )
)
_SINGLE = any_of(
    (
        *(
            "RANK",
            "LOCAL_RANK",
            "GROUP_RANK",
            "ROLE_RANK",
            "NODE_RANK",
            "WORLD_SIZE",
            "LOCAL_WORLD_SIZE",
        ),
        *("GROUP_WORLD_SIZE", "POD_IP", "DEVICE_ID", "TRAINING_ROLE"),
        *(
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "PYTHONPATH",
            "PYTHONHOME",
            "HOSTNAME",
            "MINDSPORE_HCCL_CONFIG_PATH",
            "HOSTALIASES",
            "LOCALDOMAIN",
            "RES_OPTIONS",
            "RESOLV_HOST_CONF",
            "LD_AUDIT",
        ),
    )
)
VARIABLES = f"{_FAMILIES}_[A-Za-z0-9_]+|{_SINGLE}"
"""The names of variables that jobs care for (POSIX extended regular expression)."""

_CLOUD_KEYS = "preserve_hostname|manage_etc_hosts|hostname|fqdn|prefer_fqdn_over_hostname|create_hostname_file"
_SSHD_KEYS = (
    "Match|MaxStartups|MaxSessions|Port|ListenAddress|AddressFamily|Include|SetEnv|PermitUserEnvironment|UsePAM"
    "|PerSourceMaxStartups|AcceptEnv"
)
# Of network configurations only what names an interface, sets an MTU or makes a route: passwords of wireless
# networks stay on the host.
_NETWORK_KEYS = (
    "iface|Name|OriginalName|interface-name|DEVICE|mtu|MTU|MTUBytes|to|type|Type|Destination|To|Action|action"
    "|route[0-9]+|ADDRESS[0-9]+|addresses|address[0-9]*|Address|IPADDR[0-9]*|dhcp4|DHCP|BOOTPROTO|method"
)
_NETWORK_COMMANDS = (
    "(ip|tc|ifconfig|route)[[:space:]].*(unreachable|blackhole|prohibit|netem|mtu)"
    "|(ip|ifconfig)[[:space:]].*[[:space:]](down|flush|del|delete)([[:space:]]|$)|ifdown[[:space:]]+[a-z]"
)
# Of commands to a firewall only those that close it, or load what is in another file.
_FIREWALL_COMMANDS = (
    "ip6?tables[a-z-]*[[:space:]].*(DROP|REJECT)|ip6?tables[a-z-]*-restore"
    "|nft[[:space:]].*(-f|drop|reject)"
    "|ufw[[:space:]].*enable|firewall-cmd[[:space:]].*--panic-on"
)
# What tmpfiles.d, udev and scripts write at boot.
_BOOT_WRITES = (
    r"""^[[:space:]]*[wfFLCrRD][^[:space:]]*[[:space:]]+["']?/(proc/sys|sys|etc)/"""
    r"|SYSCTL[{]|ATTR[{]mtu[}][[:space:]]*:?=[^=]|sysctl[[:space:]].*=|>[[:space:]]*/(proc/sys|sys)/"
)
# Words of a command line of the kernel: those with a value, and those by themselves.
_BOOT_VALUES = (
    "ipv6[.]disable(_ipv6)?=|systemd[.](hostname|unit|mask|setenv)=|net[.]ifnames=|biosdevname=|sysctl[.]"
    "|init=/bin"
)
_BOOT_WORDS = "emergency|rescue|single|-b|[sS1]"
_MODULES = "nvidia|mlx|ib_|rdma|irdma|bnxt|efa|ipv6"
_UNIT_KEYS = (
    "Slice|IPAddressAllow|IPAddressDeny|IPIngressFilterPath|IPEgressFilterPath|RestrictNetworkInterfaces"
    "|SocketBindAllow|SocketBindDeny|RestrictAddressFamilies|PrivateNetwork|NetworkNamespacePath"
    "|MemoryMax|MemoryHigh|MemoryLimit|TasksMax|CPUQuota|DevicePolicy|RuntimeMaxSec|AllowedCPUs|CPUAffinity"
)
_SLURM_KEYS = "PropagateResourceLimits|PropagateResourceLimitsExcept|TaskProlog|LaunchParameters"

SCAN_PATTERN = "|".join(
    (
        # Assignments; pam_env.conf; the state of conda: one pattern, for grep pays for each time that it has
        # the names
        f'(^|[^A-Za-z0-9_])({VARIABLES})(:?=|[[:space:]]+(DEFAULT|OVERRIDE)=|"[[:space:]]*:)',
        # csh, Tcl and Lua modules; fish
        f"(setenv[[:space:](\"']|set[[:space:]]+-[A-Za-z]+[[:space:]])[[:space:](\"']*({VARIABLES})[^A-Za-z0-9_]",
        "^[[:space:]]*EnvironmentFile[[:space:]]*=",
        "^[^#]*pam_env",
        "^[^#]*env_(file|keep)[[:space:]]*[+]?=",
        r"""^([^#]*[[:space:];])?(\.|source)[[:space:]]+["']?/[^[:space:]]""",
        f"^[[:space:]]*({_CLOUD_KEYS})[[:space:]]*:",
        r"^[[:space:]]*-[[:space:]]*\[?[[:space:]]*(update_etc_hosts|update_hostname|set_hostname)",
        f"^[[:space:]]*({_SSHD_KEYS})[[:space:]=]",
        f"^[[:space:]]*({_SLURM_KEYS})[[:space:]]*=",
        f"^[[:space:]]*({_UNIT_KEYS})[[:space:]]*=",
        "^([^#]*[;&[:space:]])?ulimit[[:space:]]+-",
        f"^[[:space:]]*-?[[:space:]]*({_NETWORK_KEYS})([[:space:]:=]|$)",
        "^[[:space:]]*[A-Za-z0-9_.-]+:[[:space:]]*$",
        r"^[[:space:]]*-[[:space:]]*\"?[0-9.]+/[0-9]+",
        _NETWORK_COMMANDS,
        _FIREWALL_COMMANDS,
        _BOOT_WRITES,
        (
            f"^[[:space:]]*(linux|linuxefi|linux16|options|GRUB_CMDLINE_LINUX[A-Z_]*=).*[[:space:]\"']"
            f"({_BOOT_VALUES}|({_BOOT_WORDS})([[:space:]\"']|$))"
        ),
        f"^[[:space:]]*(blacklist|install|options)[[:space:]]+({_MODULES})",
    )
)
"""What is looked for in them: an extended regular expression that means the same to POSIX and to pcre(3)."""

OUTLINE_PATTERN = (
    r"^[[:space:]]*((if|case|for|while|until|select|fi|esac|done|exit|return|function)([^A-Za-z0-9_=-]|$)"
    r"|exec[[:space:]]+[^[:space:]<>&0-9]|[{}(]|[A-Za-z_][A-Za-z0-9_-]*[[:space:]]*[(][)][[:space:]]*[{]?)"
    r"|;[[:space:]]*((fi|done|esac)([^A-Za-z0-9_]|$)|[}])"
    r"|(&&|[|][|])[[:space:]]*((exit|return)([^A-Za-z0-9_]|$)|[{])|<<"
)
"""The words of a script on which its other lines depend."""

AT_PATTERN = (
    "(^|[^A-Za-z0-9_-])(nft|ip6?tables[a-z-]*|arptables|ebtables|ipset|ufw|firewall-cmd|netplan|nmcli|networkctl|ifup"
    "|ifdown|ifconfig|ip|tc|sysctl|hostnamectl|systemctl|shutdown|reboot|poweroff|halt|kexec)([^A-Za-z0-9_-]|$)"
    "|rollback|roll-back|revert|restore|undo"
)
"""Commands of at(1)'s jobs that may change a host; ``schedule`` judges which do."""
