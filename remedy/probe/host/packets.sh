# --- further tables that can drop packets, asked for only where the kernel has them ------------------------

# On which interfaces chains of ingress and egress are: nft before 1.0.7 leaves that out of its JSON.
nft_devices() {
    case $ruleset in
        *'"hook": "ingress"'* | *'"hook": "egress"'*) limited nft -s list chains ;;
        *) absent 'no such chain' ;;
    esac
}

# ipset(8) loads what it needs, so only where a rule names a set; at most what is read by `parse_firewalls`.
ip_sets() {
    case $saved in
        *' --match-set '*) limited sh -c 'ipset save | head -c 4000000' ;;
        *) absent 'no rule names a set' ;;
    esac
}

legacy_arptables() {
    legacy_rules /proc/net/arp_tables_names arptables-legacy-save arptables-legacy-save
}

legacy_ebtables() {
    [ -d /sys/module/ebtable_filter ] || [ -d /sys/module/ebtable_nat ] || { absent 'no table'; return; }
    limited ebtables-legacy-save
}
