# --- network ---------------------------------------------------------------------------------------------

# All that ip is asked, from one process: addresses, the main table and the rules for this section; all tables,
# the neighbours that do not heal by themselves, and IPsec for section routing.
ip_facts() {
    routes=
    has ip || { status=missing detail='ip (iproute2) is not installed'; return; }
    ipsec= ipsec_known=known
    ! knows_ipsec || ipsec='xfrm policy show'
    answers=$(ip -j -d -force -batch - <<END 2>&1
addr show
route show table main
rule show
route show table all
neigh show nud permanent nud noarp nud failed
$ipsec
END
)
    judge $?
    ip_status=$status
    [ "$status" != failed:1 ] || status=ok # its words tell
    array=0
    IFS=$nl
    set -f
    for line in $answers; do
        case $line in '['*) array=$((array + 1)) ;; esac
        [ "$array" -gt 3 ] || printf '%s\n' "$line"
        case $array in
            3) rules=$line ;;
            4) routes=$line$nl$rules ;;
            [5-9]*) routes=$routes$nl$line ;;
        esac
    done
    set +f
    unset IFS answers
    ! has_ipv6 || routes=$(ip -j -6 rule show 2>&1 </dev/null)$nl$routes
}

# has_ipv6: whether an interface has an address of IPv6 that others could reach: scope 00 in proc_net(5).
has_ipv6() {
    while read -r _ _ _ scope _; do
        [ "$scope" != 00 ] || return 0
    done </proc/net/if_inet6
    return 1
}

# `ip xfrm` opens a socket of netlink's family 6, for which the kernel would load xfrm_user. Where the files of
# modules do not tell, the kernel's own socket of that family does.
knows_ipsec() {
    kernel_has xfrm_user
    case $? in
        0) [ -e /proc/modules ] || [ -e /proc/net/xfrm_stat ] ;;
        1) return 1 ;;
        *)
            [ -r /proc/net/netlink ] || { ipsec_known=unknown; return 1; }
            grep -q '^[0-9a-f]* 6 ' /proc/net/netlink
            ;;
    esac
}
