# --- the ways to peers -----------------------------------------------------------------------------------

# All tables, the rules that choose among them, and the neighbours: ip_facts has asked.
routing_facts() {
    has ip || { status=missing detail='ip (iproute2) is not installed'; return; }
    [ "$ip_status" != timeout ] || { status=timeout; return; }
    [ "${#routes}" -lt 1000000 ] || { printf 'more than 1 MB'; return; }
    printf '%s\n\nipsec %s\n' "$routes" "$ipsec_known"
}

# Queueing disciplines of all devices. Filters are asked for only where something can have any; devices of
# containers have theirs from their own network.
queueing_facts() {
    has tc || { status=missing detail='tc (iproute2, or the package iproute-tc) is not installed'; return; }
    disciplines=$(tc qdisc show 2>&1 </dev/null)
    judge $?
    printf '%s\n' "$disciplines"
    [ "$status" = ok ] || { detail=$disciplines; return; }
    case $nl$disciplines in
        *"${nl}qdisc ingress "* | *"${nl}qdisc clsact "* | *"${nl}qdisc htb "* | *"${nl}qdisc hfsc "*) ;;
        *"${nl}qdisc prio "* | *"${nl}qdisc drr "* | *"${nl}qdisc qfq "* | *"${nl}qdisc ets "*) ;;
        *"${nl}qdisc cbq "* | *"${nl}qdisc dsmark "* | *"${nl}qdisc multiq "*) ;;
        *) return ;;
    esac
    asked=' '
    IFS=$nl
    set -f
    for line in $disciplines; do
        unset IFS
        set -- $line
        [ "$1" = qdisc ] && [ "$4" = dev ] || continue
        case $5 in veth* | cali* | lxc* | gke* | -*) continue ;; esac
        case $2 in
            ingress | clsact | htb | hfsc | prio | drr | qfq | ets | cbq | dsmark | multiq) ;;
            *) continue ;;
        esac
        case $asked in *" $5 "*) continue ;; esac
        asked="$asked$5 "
        for place in root ingress egress; do
            printf 'filters %s %s\n' "$5" "$place"
            case $place in
                root) tc filter show dev "$5" 2>/dev/null </dev/null ;;
                *) tc filter show dev "$5" "$place" 2>/dev/null </dev/null ;;
            esac
        done
    done | head -c 1000000
    set +f
    unset IFS
}
