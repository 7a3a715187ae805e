# --- what a change needs is kept on the host, in the folder of the run ------------------------------

# Keep a content on the host: name below $DIR, text; store64 takes it in base64. See prepare for why a file is
# opened twice.
store() {
    { { command : >"$DIR/$1" && printf %s "$2" >"$DIR/$1"; } 2>"$SAID"; } 2>/dev/null || unwritten "$1"
    case $1 in
    new/*[!0-9a-f]*) ;;
    new/*) eval "TEXT_${1#new/}=\$2" ;;
    esac
}

store64() {
    { { printf %s "$2" | base64 -d >"$DIR/$1"; } 2>"$SAID"; } 2>/dev/null || unwritten "$1"
}

# Make the pre-image of a change ready to be put back: its run, its id, and the digest it is known by.
restore() {
    [ ! -e "$ROOT/runs/$1/pre/$2" ] || cp -p -- "$ROOT/runs/$1/pre/$2" "$DIR/new/$3"
}

# Whether a run ever began to make a change. What it did not make is not taken back. Without a receipt nobody can
# tell: then it is looked whether all is as it was before, and nothing is made.
took() { # run id undo-id
    if [ ! -e "$ROOT/runs/$1/receipt.jsonl" ]; then
        BLIND=$1
        return 0
    fi
    grep -qF "\"change\":\"$2\",\"state\":\"started\"" "$ROOT/runs/$1/receipt.jsonl" && return 0
    say "$3" already
    return 1
}
