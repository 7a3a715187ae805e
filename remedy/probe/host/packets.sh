# --- further tables that can drop packets, asked for only where the kernel has them ------------------------

# On which interfaces chains of ingress and egress are: nft before 1.0.7 leaves that out of its JSON.
nft_devices() {
    case $ruleset in
        *'"hook": "ingress"'* | *'"hook": "egress"'*) limited nft -s list chains ;;
        *) absent 'no such chain' ;;
    esac
}

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
