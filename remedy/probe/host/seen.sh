# Whether anything answers at addresses: `seen ADDRESS...`, after nonce, mark and port are set. One line an address:
# the address, and what kind of answer came, "none" for none. Any answer counts: what is asked is whether anybody is
# there, not whether a port is open. Runs by itself, not as a part of the probe.

LC_ALL=C
export LC_ALL
for directory in /usr/sbin /usr/bin /sbin /bin; do
    case :$PATH: in *:$directory:*) ;; *) PATH=$PATH:$directory ;; esac
done

# A process each, side by side: an address where nobody is takes its whole time.
look() { # address
    answer=none
    # What this host has itself answers always, and says nothing of another.
    case $(ip -4 route get "$1" 2>/dev/null) in
        local*) printf '%s local\n' "$1"; return ;;
    esac
    if ping -n -c 1 -W 2 "$1" >/dev/null 2>&1; then
        answer=reply
    elif error=$(BASH_ENV='' timeout 2 bash -c "exec 3<>/dev/tcp/$1/$port" 2>&1); then
        answer=connection
    else
        case $error in *efused*) answer=refusal ;; esac
    fi
    # Where a firewall drops all that, the question for its hardware address was answered before.
    if [ "$answer" = none ]; then
        case $(ip -4 neigh show to "$1" nud reachable nud stale nud delay nud probe 2>/dev/null) in
            *lladdr*) answer=neighbour ;;
        esac
    fi
    printf '%s %s\n' "$1" "$answer"
}

seen() {
    printf '%s %s begin\n' "$mark" "$nonce"
    for address; do look "$address" </dev/null & done
    wait
    printf '%s %s end\n' "$mark" "$nonce"
}
