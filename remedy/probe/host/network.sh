# --- network ---------------------------------------------------------------------------------------------

# All that ip is asked, from one process: addresses, the main table and the rules for this section; all tables,
# the neighbours that do not heal by themselves, and IPsec for section routing.
ip_facts() {
    routes=
    has ip || { status=missing detail='ip (iproute2) is not installed'; return; }
    ipsec=
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
}

# `ip xfrm` opens a socket for which the kernel would load xfrm_user.
knows_ipsec() {
    if [ -e /proc/modules ]; then kernel_has xfrm_user; else [ -e /proc/net/xfrm_stat ]; fi
}
