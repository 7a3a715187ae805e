# --- network ---------------------------------------------------------------------------------------------

# Three arrays in JSON, from one process.
ip_facts() {
    has ip || { status=missing detail='ip (iproute2) is not installed'; return; }
    ip -j -d -force -batch - <<END 2>&1
addr show
route show table main
rule show
END
    judge $?
    [ "$status" != failed:1 ] || status=ok # its words tell
}
