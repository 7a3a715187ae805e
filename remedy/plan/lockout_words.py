"""The files, programs and units by which a host can be locked, and programs that leave connections alone."""

from __future__ import annotations


def words_of(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


def _of(kind: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), kind)


# By what they are of: a file, or a folder where the name ends in "/"; and what begins alike ("/etc/nftables").
FILES: dict[str, tuple[str, ...]] = {
    "sshd": (
        *("/etc/ssh/", "/etc/default/ssh", "/etc/sysconfig/sshd", "/etc/crypto-policies/"),
        *("/run/sshd", "/var/run/sshd"),
    ),
    "sudo": (
        *("/etc/sudoers", "/etc/sudo.conf", "/etc/sudo-ldap.conf", "/etc/doas.conf"),
        "/etc/polkit-1/",
    ),
    "login": (
        *("/etc/pam.d/", "/etc/pam.conf", "/etc/security/", "/etc/environment", "/etc/login.defs"),
        *("/etc/nologin", "/run/nologin", "/var/run/nologin", "/etc/passwd", "/etc/shadow"),
        *("/etc/group", "/etc/gshadow", "/etc/shells", "/etc/securetty", "/etc/profile"),
        *("/etc/bash", "/etc/zsh", "/etc/zprofile", "/etc/csh", "/etc/fish/", "/etc/krb5"),
        *("/etc/sssd/", "/etc/nslcd.conf", "/etc/nscd.conf", "/etc/ldap", "/etc/openldap/"),
        *("/etc/selinux/", "/etc/apparmor", "/etc/ld.so.", "/etc/systemd/logind.conf"),
        *("/etc/systemd/user.conf", "/etc/authselect/", "/etc/tcb/"),
    ),
    "names": (
        *("/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv", "/etc/host.conf", "/etc/gai.conf"),
        *("/etc/hostname", "/etc/HOSTNAME", "/etc/systemd/resolved.conf", "/run/systemd/resolve/"),
        *("/run/NetworkManager/", "/etc/dnsmasq", "/etc/unbound/"),
    ),
    "network": (
        *("/etc/network/", "/etc/netplan/", "/etc/NetworkManager/", "/etc/systemd/network"),
        *("/run/systemd/network/", "/etc/sysconfig/network", "/etc/dhcp", "/etc/iproute2/"),
        *(
            "/etc/wpa_supplicant/",
            "/etc/wireguard/",
            "/etc/ipsec",
            "/etc/swanctl/",
            "/etc/strongswan",
        ),
        *("/etc/udev/", "/etc/cloud/", "/etc/frr/", "/etc/bird", "/etc/conf.d/net"),
        *("/proc/sys/net/", "/sys/class/net/", "/sys/devices/virtual/net/"),
    ),
    "firewall": (
        *("/etc/nftables", "/etc/iptables", "/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables"),
        *("/etc/sysconfig/nftables", "/etc/ufw/", "/etc/default/ufw", "/etc/firewalld/"),
        *(
            "/etc/shorewall",
            "/etc/ferm",
            "/etc/fail2ban/",
            "/etc/sshguard",
            "/etc/ipset",
            "/etc/csf/",
        ),
        *("/etc/ebtables", "/etc/arptables"),
    ),
    "kernel settings": ("/etc/sysctl", "/run/sysctl.d/"),
}
# What every login runs is in them; a command names them also to run something.
ALL: dict[str, tuple[str, ...]] = {
    **FILES,
    "programs": (
        *("/bin/", "/sbin/", "/lib/", "/lib64/", "/usr/bin/", "/usr/sbin/", "/usr/lib/"),
        *("/usr/lib64/", "/usr/libexec/"),
    ),
}
# They are searched before those: a file in them is one of a login only by its name.
LOCAL = frozenset(("/usr/local/bin", "/usr/local/sbin"))
LOGIN_RUNS = words_of("sh bash dash ash zsh env sudo su python3 python login timeout setsid")
# In a user's folder: what a shell, PAM or sshd reads when that user comes.
STARTUP = words_of(
    ".bashrc .bash_profile .bash_login .profile .zshenv .zshrc .zprofile .zlogin .cshrc .tcshrc .login "
    ".pam_environment .k5login .rhosts .shosts"
)

PROGRAMS = {
    **_of("sshd", "sshd ssh-keygen sshd-session dropbear"),
    **_of("sudo", "visudo"),
    **_of(
        "login",
        "passwd chpasswd usermod userdel useradd adduser deluser groupmod groupadd groupdel gpasswd chage "
        "chsh vipw vigr faillock pam_tally2 pam-auth-update authselect authconfig setenforce semanage "
        "setsebool restorecon chcon loginctl aa-enforce apparmor_parser nologin reboot poweroff halt "
        "shutdown telinit kexec pivot_root pkill killall killall5 skill",
    ),
    **_of("names", "hostname hostnamectl resolvectl resolvconf domainname nmblookup"),
    **_of(
        "network",
        "ip ifconfig ifup ifdown ifreload route netplan nmcli nmtui nmstatectl networkctl dhclient dhcpcd "
        "udhcpc tc bridge brctl ethtool wg wg-quick wpa_cli iw iwconfig rfkill vconfig ovs-vsctl "
        "ovs-ofctl teamdctl ifenslave arp ndp conntrack udevadm modprobe rmmod insmod bpftool xdp-loader "
        "vtysh swanctl strongswan",
    ),
    **_of(
        "firewall",
        "nft iptables ip6tables iptables-restore ip6tables-restore iptables-legacy ip6tables-legacy "
        "iptables-nft ip6tables-nft iptables-legacy-restore iptables-nft-restore xtables-multi ebtables "
        "arptables ipset ufw firewall-cmd firewall-offline-cmd shorewall ferm csf fail2ban-client "
        "netfilter-persistent",
    ),
}
# What starts, stops and signals units and their processes.
MANAGERS = words_of("systemctl service rc-service invoke-rc.d initctl busctl systemd-run kill")
# By the name of the unit, without its kind.
UNITS = {
    **_of("sshd", "ssh sshd ssh-agent openssh-server dropbear"),
    **_of(
        "login",
        "systemd-logind systemd-user-sessions sssd nscd nslcd winbind dbus dbus-broker polkit oddjobd "
        "user user-",
    ),
    **_of("names", "systemd-resolved systemd-hostnamed dnsmasq unbound"),
    **_of(
        "network",
        "systemd-networkd NetworkManager networking network network-online wicked connman systemd-sysctl "
        "systemd-udevd openvswitch openvswitch-switch wg-quick cloud-init strongswan ipsec",
    ),
    **_of("firewall", "firewalld nftables shorewall sshguard fail2ban ferm"),
}
# Programs that alter what their words name, so that a folder of programs counts where they name it.
WRITING = words_of(
    "rm mv cp ln install chmod chown chgrp chattr setfacl dd tee truncate sed unlink shred rsync tar"
)
# What changes no more than the files that its words name, and those are looked at; and the words of a shell.
HARMLESS = words_of(
    "[ test true false : echo printf read cd set shift local return exit break continue export unset "
    "umask trap wait type cat head tail cut tr sort uniq wc grep sed awk basename dirname readlink "
    "realpath stat ls find id date sleep sha256sum md5sum base64 cmp diff df du uname nproc getent seq "
    "expr sync flock mktemp rm mv cp ln install mkdir rmdir touch chmod chown chgrp tee truncate dd "
    "unlink mount umount swapon swapoff kill ipcrm ipcs nvidia-smi numactl put drop seen look_up roots"
)
