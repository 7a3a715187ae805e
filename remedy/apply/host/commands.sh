# --- commands: command_check, then command_do ---------------------------------------------------------

command_check() { # id observe before after
    now=$(eval "$2" 2>/dev/null </dev/null 9>&-)
    [ "$now" != "$4" ] || return 2
    if [ "$now" != "$3" ]; then
        say "$1" stale "expected $3, found $now"
        return 1
    fi
    [ -z "${DRY-}" ] || return 0
    printf %s "$now" >"$DIR/pre/$1"
}

# Whether a command was run: it may have changed the mode of a file whose new content is prepared already.
COMMANDS=

command_do() { # id observe before after do
    COMMANDS=1
    error=$(eval "$5" 2>&1 </dev/null 9>&-) || {
        say "$1" failed "${error:-the command ended with status $? and printed nothing}"
        return 1
    }
    now=$(eval "$2" 2>/dev/null </dev/null 9>&-)
    [ "$now" = "$4" ] || { say "$1" failed "after the command: $now, expected: $4. $error"; return 1; }
}
