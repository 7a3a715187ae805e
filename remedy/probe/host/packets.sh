# --- further tables that can drop packets, asked for only where the kernel has them ------------------------

# On which interfaces chains of ingress and egress are, and which tables are dormant, so that no packet passes
# them: nft before 1.0.7 and later ones leave that out of their JSON. Asked only where there is such a chain, or one
# of a table that neither iptables nor firewalld has made.
nft_devices() {
    [ "${#ruleset}" -gt 200 ] || { absent 'no chain'; return; }
    case $ruleset in
        *'"hook": "ingress"'* | *'"hook": "egress"'*) ;;
        *) printf %s "$ruleset" | grep -qE "$own_chain" || { absent 'no such chain'; return; } ;;
    esac
    plain=$(nft -s -t list ruleset 2>&1 </dev/null || nft -s list ruleset 2>&1 </dev/null)
    judge $?
    if [ "$status" = ok ]; then
        printf '%s\n' "$plain" | grep -E '^table|^[[:space:]]*(chain|type|flags) '
    else
        detail=$plain
    fi
}
own_chain='"chain": [{]"family": "((inet|netdev|arp|bridge)", "table": "([^f"]|f[^i"]|fi[^r"]|fir[^e"])[^"]*"'\
', "name": "[^"]*|ip6?", "table": "[^"]*", "name": "[a-z][^"]*)", "handle": [0-9]+, ("comment": "[^"]*", )?"type"'

# ipset(8) loads what it needs, so only where a rule names a set.
ip_sets() {
    case $saved in
        *' --match-set '*) ;;
        *) absent 'no rule names a set'; return ;;
    esac
    sets=$(ipset save 2>&1 </dev/null)
    judge $?
    detail=$sets
    if [ "${#sets}" -gt 4000000 ]; then
        status=failed:0 detail='more than 4 MB of sets'
    else
        printf '%s' "$sets"
    fi
}

legacy_arptables() {
    legacy_rules /proc/net/arp_tables_names arptables-legacy-save arptables-legacy-save
}

legacy_ebtables() {
    [ -d /sys/module/ebtable_filter ] || [ -d /sys/module/ebtable_nat ] || { absent 'no table'; return; }
    limited ebtables-legacy-save
}
