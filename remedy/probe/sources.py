"""What the probe looks at: the lists that are handed to the script.

Every list is data, so that a remedy's author sees in one place what a ``HostState`` can answer.
Where a list takes patterns they are the shell's (``*``, ``[...]``), expanded on the host.
"""

from __future__ import annotations

FILES = (
    # Names (hostname(5), hosts(5), nsswitch.conf(5), resolv.conf(5))
    "/etc/hostname",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc",
    "/tmp",  # noqa: S108 - directories, no files in them
    "/dev/shm",  # noqa: S108
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/etc/machine-id",
    "/etc/os-release",
    "/etc/cloud/templates/hosts.*.tmpl",
    # Kernel settings that are put back at boot (sysctl.d(5)); ufw applies its own file after them
    "/etc/sysctl.conf",
    "/etc/sysctl.d/*.conf",
    "/run/sysctl.d/*.conf",
    "/usr/local/lib/sysctl.d/*.conf",
    "/usr/lib/sysctl.d/*.conf",
    "/etc/ufw/sysctl.conf",
    "/etc/modules-load.d/*.conf",
    "/etc/modprobe.d/*remedy*.conf",
    "/etc/fstab",
    # Firewalls: what is loaded at boot
    "/etc/default/ufw",
    "/etc/ufw/ufw.conf",
    "/etc/ufw/user.rules",
    "/etc/ufw/before.rules",
    "/etc/ufw/after.rules",
    "/etc/ufw/user6.rules",
    "/etc/ufw/before6.rules",
    "/etc/ufw/after6.rules",
    "/etc/firewalld/firewalld.conf",
    "/etc/firewalld/direct.xml",
    "/etc/firewalld/zones/*.xml",
    "/usr/lib/firewalld/zones/*.xml",
    "/etc/firewalld/services/*.xml",
    "/etc/firewalld/policies/*.xml",
    "/etc/firewalld/ipsets/*.xml",
    "/etc/nftables.conf",
    "/etc/nftables.d/*.nft",
    "/etc/nftables.d/*.conf",
    "/etc/nftables/*.nft",
    "/etc/sysconfig/nftables.conf",
    "/etc/iptables/rules.v4",
    "/etc/iptables/rules.v6",
    "/etc/sysconfig/iptables",
    "/etc/sysconfig/ip6tables",
    # Containers
    "/etc/docker/daemon.json",
    "/etc/default/docker",
    "/etc/sysconfig/docker",
    "/etc/systemd/system/docker.service.d/*.conf",
    "/etc/containers/containers.conf",
    "/etc/containers/containers.conf.d/*.conf",
    "/usr/share/containers/containers.conf",
    # Environment, for each way a job is started
    "/etc/environment",
    "/etc/nccl.conf",
    "/etc/profile.d/*remedy*",
    "/etc/openmpi/openmpi-mca-params.conf",
    "/etc/openmpi-mca-params.conf",
    "/etc/pmix-mca-params.conf",
    "/etc/prte-mca-params.conf",
    "/etc/ucx/ucx.conf",
    # Limits and logind (limits.conf(5), logind.conf(5), systemd-system.conf(5))
    "/etc/security/limits.conf",
    "/etc/security/limits.d/*.conf",
    "/etc/systemd/logind.conf",
    "/etc/systemd/logind.conf.d/*.conf",
    "/run/systemd/logind.conf.d/*.conf",
    "/usr/lib/systemd/logind.conf",
    "/usr/lib/systemd/logind.conf.d/*.conf",
    "/etc/systemd/system.conf",
    "/etc/systemd/system.conf.d/*.conf",
    "/usr/lib/systemd/system.conf.d/*.conf",
    "/etc/systemd/system/*.service.d/*remedy*.conf",
    "/etc/systemd/system/default.target",
    "/etc/systemd/system/*.target",
    "/etc/ld.so.preload",
    # Ascend (the rank table is made from hccn.conf)
    "/etc/hccn.conf",
    "/etc/ascend_install.info",
    "/usr/local/Ascend/driver/version.info",
)
"""Files read whole, always. A path without a pattern that is not there is reported as not there."""

FOLDERS = ("/etc", "/tmp", "/dev/shm")  # noqa: S108
"""Those of them that are directories: their mode is read."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
"""Those of them that have to be character devices: stat(2) shows their kind and mode, nothing opens them."""

HOME_FILES = (
    ".nccl.conf",
    ".openmpi/mca-params.conf",
    ".pmix/mca-params.conf",
    ".prte/mca-params.conf",
)
"""The same, below the home directory of the user who logged in (and of the one sudo runs as)."""

SYSCTLS = (
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_local_reserved_ports",
    "net/ipv4/ip_unprivileged_port_start",
    "net/ipv4/ip_forward",
    "net/ipv4/ip_default_ttl",
    "net/ipv4/ip_nonlocal_bind",
    "net/ipv4/tcp_retries2",
    "net/ipv4/tcp_syn_retries",
    "net/ipv4/tcp_synack_retries",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_keepalive_time",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_base_mss",
    "net/ipv4/tcp_min_snd_mss",
    "net/ipv4/tcp_notsent_lowat",
    "net/ipv4/tcp_moderate_rcvbuf",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/conf/*/rp_filter",
    "net/ipv4/conf/*/arp_ignore",
    "net/ipv4/conf/*/arp_announce",
    "net/ipv4/conf/*/arp_filter",
    "net/ipv4/conf/*/accept_local",
    "net/ipv4/conf/*/proxy_arp",
    "net/ipv4/conf/*/proxy_arp_pvlan",
    "net/ipv4/neigh/*/mcast_solicit",
    "net/ipv4/neigh/*/ucast_solicit",
    "net/ipv4/neigh/*/app_solicit",
    "net/ipv4/neigh/*/retrans_time_ms",
    "net/ipv4/neigh/*/base_reachable_time_ms",
    "net/ipv4/neigh/default/gc_thresh3",
    "net/ipv6/conf/*/disable_ipv6",
    "net/ipv6/bindv6only",
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_count",
    "net/netfilter/nf_conntrack_tcp_timeout_established",
    "net/bridge/bridge-nf-call-iptables",
    "fs/file-max",
    "fs/nr_open",
    "fs/inotify/max_user_instances",
    "kernel/hostname",
    "kernel/domainname",
    "kernel/osrelease",
    "kernel/shmmax",
    "kernel/shmall",
    "kernel/shmmni",
    "kernel/sem",
    "kernel/msgmni",
    "kernel/pid_max",
    "kernel/threads-max",
    "kernel/numa_balancing",
    "kernel/yama/ptrace_scope",
    "vm/overcommit_memory",
    "vm/max_map_count",
    "vm/zone_reclaim_mode",
    "vm/swappiness",
    "vm/nr_hugepages",
)
"""Kernel settings, as paths below /proc/sys (Documentation/networking/ip-sysctl.rst, admin-guide/sysctl/)."""

KERNEL_FILES = (
    *(f"/proc/sys/{name}" for name in SYSCTLS),
    "/proc/sys/kernel/random/boot_id",
    "/proc/cmdline",
    "/proc/modules",
    "/proc/meminfo",
    "/proc/self/limits",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/sysvipc/shm",
    "/proc/sysvipc/sem",
    "/proc/sysvipc/msg",
    "/proc/net/ipv6_route",
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/online",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/bus/pci/devices/*/modalias",
)
"""Files of the kernel that cannot hang, read line by line in one go."""

LINK_FILES = (
    "/sys/class/net/*/speed",
    "/sys/class/net/*/duplex",
    "/sys/class/net/*/carrier",
    "/sys/class/net/*/uevent",
    "/sys/class/net/*/device/uevent",
    "/sys/class/net/*/device/modalias",
)
"""What is known of a network interface only in sysfs (Documentation/ABI/testing/sysfs-class-net). A driver that
hangs can hang these, so they are a section of their own."""

RDMA_FILES = (
    "/sys/class/infiniband/*/fw_ver",
    "/sys/class/infiniband/*/hca_type",
    "/sys/class/infiniband/*/board_id",
    "/sys/class/infiniband/*/node_guid",
    "/sys/class/infiniband/*/ports/*/state",
    "/sys/class/infiniband/*/ports/*/phys_state",
    "/sys/class/infiniband/*/ports/*/rate",
    "/sys/class/infiniband/*/ports/*/link_layer",
    "/sys/class/infiniband/*/ports/*/lid",
    "/sys/class/infiniband/*/ports/*/sm_lid",
    "/sys/class/infiniband/*/ports/*/counters/symbol_error",
    "/sys/class/infiniband/*/ports/*/counters/link_downed",
    "/sys/class/infiniband/*/ports/*/counters/link_error_recovery",
    "/sys/class/infiniband/*/ports/*/counters/port_rcv_errors",
    "/sys/class/infiniband/*/ports/*/counters/port_xmit_discards",
    "/sys/class/infiniband/*/ports/*/counters/port_xmit_wait",
    "/sys/class/infiniband/*/ports/*/counters/local_link_integrity_errors",
    "/sys/class/infiniband/*/ports/*/hw_counters/out_of_sequence",
    "/sys/class/infiniband/*/ports/*/hw_counters/packet_seq_err",
    "/sys/class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err",
    "/sys/class/infiniband/*/ports/*/hw_counters/rnr_nak_retry_err",
)
"""RDMA ports and the counters that tell a bad cable (Documentation/ABI/stable/sysfs-class-infiniband)."""

UNITS = (
    "ufw.service",
    "firewalld.service",
    "nftables.service",
    "iptables.service",
    "ip6tables.service",
    "netfilter-persistent.service",
    "docker.service",
    "containerd.service",
    "kubelet.service",
    "slurmd.service",
    "ssh.service",
    "sshd.service",
    "systemd-logind.service",
    "systemd-sysctl.service",
    "systemd-resolved.service",
    "systemd-networkd.service",
    "NetworkManager.service",
    "networking.service",
    "network.service",
    "wicked.service",
    "chrony.service",
    "chronyd.service",
    "systemd-timesyncd.service",
    "ntp.service",
    "cloud-init.service",
    "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
    "nvidia-imex.service",
    "openibd.service",
    "puppet.service",
)
"""systemd services whose presence, state and start at boot are read."""

LIMIT_UNITS = ("docker.service", "containerd.service", "kubelet.service", "slurmd.service")
"""Those of them whose limits are asked for when they run: jobs inherit them."""

PROGRAMS = (
    "getent", "hostnamectl", "systemctl", "systemd-run", "sysctl", "lsattr", "chattr", "ip", "ss", "ethtool",
    "ufw", "firewall-cmd", "nft", "iptables", "iptables-legacy", "iptables-save",
    "iptables-legacy-save", "netfilter-persistent", "docker", "dockerd", "podman", "nvidia-ctk",
    "nvidia-container-runtime", "nvidia-smi", "hccn_tool", "ibstat", "ipcrm", "python3",
    "torchrun", "mpirun", "srun", "ray", "cloud-init", "chronyc", "sudo", "timeout", "flock", "sha256sum",
    "restorecon",
)  # fmt: skip
"""Programs whose path is read."""

PRESENCE = (
    "/.dockerenv",
    "/run/.containerenv",
    "/run/systemd/system",
    "/etc/nologin",
    "/run/nologin",
    "/run/systemd/timesync/synchronized",
    "/run/cloud-init/enabled",
    "/run/cloud-init/disabled",
    "/etc/cloud/cloud-init.disabled",
    "/etc/cloud/cloud.cfg",
    "/etc/docker",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/etc/netplan",
    "/etc/NetworkManager/system-connections",
    "/etc/puppetlabs/puppet",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/davinci_manager",
    "/dev/infiniband",
    "/sys/class/iommu/*",
    "/sys/kernel/iommu_groups/0",
    "/var/run/reboot-required",
    "/sys/fs/selinux/enforce",
    "/etc/systemd/system/sockets.target.wants/ssh.socket",
    "/etc/systemd/system/sockets.target.wants/sshd.socket",
    "/etc/systemd/system/sockets.target.wants/docker.socket",
    "/etc/systemd/system/sockets.target.wants/systemd-networkd.socket",
)
"""Paths whose presence is read, not their content."""

FILE_SYSTEMS = ("/", "/etc", "/dev/shm", "/run", "/tmp", "/var/lib", "/var/log", "/boot")  # noqa: S108
"""Where room is asked for."""

PACKAGES = (
    "torch",
    "triton",
    "nvidia_nccl_cu11",
    "nvidia_nccl_cu12",
    "nvidia_nccl_cu13",
    "paddlepaddle",
    "paddlepaddle_gpu",
    "mindspore",
    "torch_npu",
    "mpi4py",
    "horovod",
    "deepspeed",
    "megatron_core",
    "accelerate",
    "numpy",
)
"""Python distributions whose version is read from the name of their metadata directory (PEP 376, PEP 491)."""

DAEMONS = (
    "systemd", "init", "(sd-pam)", "systemd-journal", "systemd-logind", "systemd-udevd", "systemd-resolve",
    "systemd-network", "systemd-timesyn", "systemd-timedat", "systemd-hostnam", "systemd-userdbd",
    "systemd-userwor", "systemd-oomd", "dbus-daemon", "dbus-broker", "dbus-broker-lau", "polkitd", "agetty",
    "login", "sshd", "sshd-session", "sshd-auth", "cron", "crond", "atd", "rsyslogd", "chronyd", "ntpd",
    "auditd", "irqbalance", "acpid", "rpcbind", "rpc.statd", "NetworkManager", "firewalld", "snapd", "udisksd",
    "multipathd", "packagekitd", "networkd-dispat", "unattended-upgr", "sudo",
)  # fmt: skip
"""Programs of every host (as /proc/PID/stat names them, 15 characters) whose command line is not read."""
