# Opening the lock of a run by its id. What it says is one word after NONCE -: free, other, alive, removed, fenced,
# pending or reverted, and in base64 who holds the lock.

unlock() { # run force
    say - begun
    first_line_of "$ROOT/pending"
    waiting=$LINE
    if [ -n "$waiting" ]; then
        if [ "$waiting" != "$1" ]; then
            say - other "run $waiting waits for its confirmation"
        elif [ -z "$2" ]; then
            say - pending "run $waiting waits for its confirmation, or for its timer to take it back"
        else
            # What nobody confirmed is taken back, as its timer would do it.
            error=$(sh "$ROOT/runs/$waiting/guard" 2>&1) && [ ! -e "$ROOT/pending" ] || give_up "$error"
            say - reverted
        fi
        return 0
    fi
    theirs=$(readlink "$ROOT/owner") || { say - free; return 0; }
    told=$(who)
    # shellcheck disable=SC2086 # words
    set -- "$1" "$2" $theirs
    if [ "$1" != "${4-}" ]; then
        say - other "$told"
    elif (shift 2; alive "$@"); then
        if [ -z "$2" ]; then
            say - alive "$told"
        else
            # Its next step finds a token that is not its own, and it ends there.
            disown
            note - "unlocked $1" || :
            say - fenced "$told"
        fi
    else
        disown
        say - removed "$told"
    fi
}
