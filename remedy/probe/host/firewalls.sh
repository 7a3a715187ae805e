# --- firewalls -------------------------------------------------------------------------------------------

nft_rules() {
    asks_kernel nf_tables || return
    has nft || { status=missing detail='nft is not installed'; return; }
    ruleset=$(nft -j -s list ruleset 2>&1 </dev/null)
    judge $?
    if [ "$status" != ok ]; then detail=$ruleset ruleset=; fi
    if [ "${#ruleset}" -gt 8000000 ]; then
        status=failed:0 detail='more than 8 MB of rules'
    else
        printf '%s' "$ruleset"
    fi
}

# saved_rules FAMILY SAVE...: what iptables keeps in nftables, asked for only where there is any.
saved_rules() {
    has "$2" || { absent "$2 is not installed"; return; }
    asks_kernel nf_tables || return # where the tool has the old tables, those are in the next section
    if [ "$ruleset" ]; then
        case $ruleset in
            *'"table": {"family": "'"$1"'"'*) ;;
            *) absent 'no table'; return ;;
        esac
    fi
    save_rules "$2"
}

# What is printed stays in $saved, of all tables.
save_rules() {
    rules=$("$1" 2>&1 </dev/null)
    judge $?
    detail=$rules saved=$saved$nl$rules
    printf '%s' "$rules"
}
iptables_rules() { saved_rules ip iptables-save; }

ip6tables_rules() { reached_by_ipv6 && saved_rules ip6 ip6tables-save; }
reached_by_ipv6() { has_ipv6 || { absent 'no interface has an address of IPv6 beyond its link'; return 1; }; }

# legacy_rules NAMES SAVE FALLBACK: the old kernel tables; asking for them where there are none would make them.
legacy_rules() {
    tables=
    [ -e "$1" ] || { absent 'no table'; return; }
    [ -r "$1" ] || { status=failed:1 detail='reading it needs root'; return; }
    read -r tables <"$1"
    [ "$tables" ] || { absent 'no table'; return; }
    save=$2
    has "$save" || save=$3
    has "$save" || { status=missing detail="$2 is not installed"; return; }
    save_rules "$save"
}
legacy_iptables() { legacy_rules /proc/net/ip_tables_names iptables-legacy-save iptables-save; }
legacy_ip6tables() { reached_by_ipv6 && legacy_rules /proc/net/ip6_tables_names ip6tables-legacy-save ip6tables-save; }

# What firewalld has in force is in the rules above, and what it has for good in its files: firewall-cmd, which is
# Python and takes a quarter of a second, would say no more.
firewalld() {
    has firewall-cmd || { absent 'firewall-cmd is not installed'; return; }
    asks firewalld || return
    printf 'running\n'
}
