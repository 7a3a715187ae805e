# A close look at one host: reads it and writes nothing. Put in front: nonce, address (of this host), peers (of the
# others), python (that the inventory names, or nothing), again (anything where this is the second look of a run).
#
# Each line that it prints is `NONCE SECTION TEXT`. A client that could load a module is asked only where the
# kernel has what it asks about; one that could wake a daemon is not asked at all.

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
LC_ALL=C
export LC_ALL
has() { command -v "$1" >/dev/null 2>&1; }
soon=
! has timeout || soon='timeout 5'
# Rules and queues are root's to read.
as_root=
[ "$(id -u)" = 0 ] || ! sudo -n true 2>/dev/null || as_root='sudo -n'

# put SECTION: marks the lines of standard input.
put() { head -n 700 | cut -c1-300 | sed "s#^#$nonce $1 #"; }

interface=$(ip -o addr show 2>/dev/null | grep -F " $address/" | sed 's/^[0-9]*: *\([^ ]*\).*/\1/' | head -n 1)

[ -z "$interface" ] || echo "$interface" | put interface

# --- numbers that count what was lost ----------------------------------------------------------------------

for file in /proc/net/snmp /proc/net/netstat; do
    while read -r name titles && read -r _ values; do
        set -- $values
        for title in $titles; do
            case $title in
                *Drop* | *Err* | *Fail* | *Retrans* | *Overflow* | *Discard* | *NoRoute* | *Unreach* | *Filter* \
                    | *Abort* | *Reset* | *Rst* | *NoPorts* | *Timeout* | *Prune* | *Loss* | *MinTTL* | *TTL* | InMsgs \
                    | *Frag* | *Reasm*) echo "${name%:}.$title $1" ;;
            esac
            shift
        done
    done <"$file"
done | put count
[ ! -r /proc/net/xfrm_stat ] || sed 's/[[:space:]]\{1,\}/ /' /proc/net/xfrm_stat | put count
sed -n 's/^ *\([^:]*\): *[0-9]* *[0-9]* *\([0-9]*\) *\([0-9]*\).*/\1.rx_errors \2\n\1.rx_dropped \3/p' /proc/net/dev | put count
for file in /sys/class/net/*/statistics/tx_dropped /sys/class/net/*/statistics/tx_errors; do
    [ ! -r "$file" ] || { read -r number <"$file"; name=${file#/sys/class/net/}; echo "${name%%/*}.${file##*/} $number"; }
done | put count

# --- rules: of packets ---------------------------------------------------------------------------------------

# kernel_has NAME: whether its tables are there without loading anything.
kernel_has() { [ -d "/sys/module/$1" ] || [ ! -e /proc/modules ]; }
if has nft && kernel_has nf_tables; then $soon $as_root nft list ruleset 2>/dev/null | put nft; fi
for family in ip ip6; do
    save=${family}tables
    case $family in ip) names=/proc/net/ip_tables_names ;; *) names=/proc/net/ip6_tables_names ;; esac
    [ ! -s "$names" ] || ! has "$save-legacy-save" || $soon $as_root "$save-legacy-save" -c 2>/dev/null | put "$save"
    # Tables of nftables by which iptables' own tool shows counters and matches that nft does not print.
    ! has "$save-nft-save" || ! kernel_has nf_tables || $soon $as_root "$save-nft-save" -c 2>/dev/null | put "$save"
done
if [ "$interface" ] && has tc; then
    $soon tc -s qdisc show dev "$interface" 2>/dev/null | put queue
    for side in root ingress egress 'parent ffff:'; do
        $soon tc -s filter show dev "$interface" $side 2>/dev/null | sed "s/^/$side /" | put filter
    done
fi
if has ip; then
    # What the way to each peer is, by the kernel's own answer.
    for peer in $peers; do
        printf '%s: %s\n' "$peer" "$(ip route get "$peer" from "$address" 2>&1 | tr '\n' ' ')"
    done | put way
    ip rule 2>/dev/null | put rule
    ip route show table all 2>/dev/null | grep -v '^\(broadcast\|local\|anycast\|multicast\|ff00\|fe80\)' | put route
    for peer in $peers; do ip neigh show "$peer" 2>/dev/null; done | grep 'PERMANENT\|FAILED\|INCOMPLETE\|NOARP' | put neighbour
    $as_root ip xfrm policy 2>/dev/null | tr -d '\t' | put xfrm
    [ -z "$interface" ] || ip -d link show dev "$interface" 2>/dev/null | sed -n '1p;/prog/p' | sed 's/^[0-9]*: //' | put link
fi
if [ -r /proc/sys/net/netfilter/nf_conntrack_max ]; then
    read -r used </proc/sys/net/netfilter/nf_conntrack_count
    read -r most </proc/sys/net/netfilter/nf_conntrack_max
    [ $((used * 20)) -lt $((most * 19)) ] || echo "nf_conntrack: $used of $most connections are tracked: the table is full" | put full
fi

# --- processes that stand still ------------------------------------------------------------------------------

for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" || continue
    case ${line##*\) } in
        [TtD]' '*) pid=${line%% *}; echo "process $pid in state ${line##*\) } $(tr '\000' ' ' <"/proc/$pid/cmdline")" ;;
    esac
done 2>/dev/null | sed 's/\(in state .\) [-0-9 ]*/\1: /' | put stopped

[ -z "$again" ] || { echo "$nonce end of look"; exit 0; }

# --- what does not change in seconds -------------------------------------------------------------------------

for file in /proc/[0-9]*/cmdline; do tr '\000' ' ' <"$file" && echo; done 2>/dev/null | grep . \
    | grep -v '^\(sh -s\|sh -c eval\|tr \|sshd: \|sed \|head \|cut \|grep \|sort \|timeout -k\)' | sort -u | put process
ulimit -a | put limit
{
    umask
    grep '^\(Seccomp\|NoNewPrivs\|CapBnd\|CapEff\|Cpus_allowed_list\)' /proc/self/status
    cat /proc/self/attr/current 2>/dev/null
} | put status
env | grep '^\(LD_\|PYTHON\|NCCL_\|GLOO_\|TORCH\|OMPI_\|UCX_\|TMPDIR\|HOME\|PATH\|CUDA_\|MASTER_\|http\|all_proxy\|no_proxy\|HTTP\|RANK\|WORLD\)' \
    | put environment
cat /etc/ld.so.preload 2>/dev/null | put preload
grep -v ' /\(proc\|sys\|run\)[/ ]' /proc/mounts | while read -r _ place kind options _; do
    for option in $(echo "$options" | tr ',' ' '); do
        case $option in ro | noexec | nosuid | nodev | size=* | usrquota | grpquota | prjquota) echo "$place $kind $option" ;; esac
    done
done | put mount
for place in / /tmp /dev/shm /var/tmp "${TMPDIR:-/tmp}" "${HOME:-/}"; do
    [ -d "$place" ] || { echo "$place: no such directory"; continue; }
    [ -w "$place" ] || echo "$place: may not be written by ${USER:-this user}"
    for what in k i; do
        used=$($soon df -P$what "$place" 2>/dev/null | sed -n '2s/.* \([0-9]*\)% .*/\1/p')
        case $used in 9[5-9] | 100) case $what in k) echo "$place: $used% of its room is used" ;; *) echo "$place: $used% of its inodes are used" ;; esac ;; esac
    done
done | sort -u | put space
while IFS=: read -r _ controllers path; do
    for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
        case $root in */cgroup | */unified) ;; *) case ,$controllers, in *,"${root##*/}",* | *,name="${root##*/}",*) ;; *) continue ;; esac ;; esac
        at=$path
        while :; do
            for name in pids.max memory.max memory.high memory.limit_in_bytes cpu.max cpu.cfs_quota_us cpuset.cpus; do
                [ ! -r "$root$at/$name" ] || { read -r value <"$root$at/$name" && echo "$name=$value (${at:-/})"; }
            done
            case $at in '' | /) break ;; esac
            at=${at%/*}
        done
    done
done </proc/self/cgroup 2>/dev/null | grep -v '=max \|=-1 \|=9223372036854771712 ' | sed 's/session-[0-9a-z]*/session/' | sort -u | put cgroup
grep -rsH '' /proc/sys/net/core /proc/sys/net/ipv4 /proc/sys/net/ipv6/conf/all /proc/sys/net/netfilter \
    /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max /proc/sys/kernel/shmmax /proc/sys/kernel/sem \
    /proc/sys/fs/file-max /proc/sys/fs/nr_open /proc/sys/vm/max_map_count /proc/sys/vm/overcommit_memory 2>/dev/null \
    | grep -v '/route/\|fastopen_key\|secret\|conntrack_count\|/neigh/' \
    | grep "/conf/\(all\|default\|${interface:-all}\)/\|/core/\|/ipv4/[^/]*:\|netfilter\|/kernel/\|/fs/\|/vm/" | put sysctl
for file in /etc/hosts /etc/hosts.allow /etc/hosts.deny /etc/nsswitch.conf /etc/resolv.conf /etc/gai.conf /etc/host.conf \
    /etc/environment /etc/profile /etc/profile.d/* /etc/bash.bashrc /etc/ld.so.conf /etc/ld.so.conf.d/* /etc/nccl.conf \
    /etc/security/limits.conf /etc/security/limits.d/* /etc/sysctl.conf /etc/sysctl.d/* /etc/ssh/sshrc \
    "$HOME"/.bashrc "$HOME"/.profile "$HOME"/.bash_profile "$HOME"/.nccl.conf "$HOME"/.ssh/rc; do
    [ ! -f "$file" ] || [ ! -r "$file" ] || sed "s#^#$file: #" "$file" | head -n 200
done 2>/dev/null | grep -v ': *\(#.*\)\{0,1\}$' | head -n 700 | put line
find /etc /usr/local/bin /usr/local/lib /usr/local/sbin -xdev -type f -size -256k \
    ! -path '/etc/ssl/*' ! -path '/etc/ssh/ssh_host*' ! -name machine-id ! -name hostname ! -name '*shadow*' \
    -exec cksum {} + 2>/dev/null | head -n 4000 | sed "s#^\([0-9]* [0-9]*\) \(.*\)#\2 \1#" | cut -c1-300 | sed "s#^#$nonce file #"

# --- what an interpreter says by itself ----------------------------------------------------------------------

# tried NAME WORDS...: how a command ended, and its last words. A Python that hangs says where it does when it is ended.
tried() {
    name=$1
    shift
    said=$($late "$@" </dev/null 2>&1)
    status=$?
    echo "$name: ended with $status$(printf '%s\n' "$said" | grep -v '^$' | tail -n 12 | sed 's/^/; /' | tr '\n' ' ')"
}
late=
! has timeout || late='timeout -k 2 -s ABRT 6'
for word in $python python3 python; do
    place=$(command -v "$word") || { [ ! -e "$word" ] || ls -ldn "$word" | sed 's/^/may not be executed: /'; continue; }
    ls -ldnL "$place" | sed 's/^\([^ ]*\) .*/\1/' | sed "s#\$# $place#"
    tried "$place" "$place" -X faulthandler -c 'pass'
    tried "$place -I -S" "$place" -I -S -c 'pass'
    tried "$place, where its modules are" "$place" -X faulthandler -c 'import importlib.util as u, sys
for n in ("torch", "sitecustomize", "usercustomize"):
    s = u.find_spec(n)
    print(n, s.origin if s else "is not there")'
    # The libraries with which it starts, by the loader's own list.
    [ ! -r /proc/self/maps ] || tried "$place, its libraries" "$place" -I -S -c 'print(*sorted({l.split()[-1] for l in open("/proc/self/maps") if "/" in l and ".so" in l}))'
    late_before=$late
    ! has timeout || late='timeout -k 2 -s ABRT 25'
    "$place" -I -S -c 'pass' </dev/null >/dev/null 2>&1 && tried "$place, import torch" "$place" -X faulthandler -c 'import torch'
    late=$late_before
done 2>&1 | put python
date +%s | put clock
echo "$nonce end of look"
