# Having taken back at once what the timer of a run would take back: the run is RUN. What it says after NONCE - is
# reverted, or gone where nothing waits any more.

take_back() {
    say - begun
    first_line_of "$ROOT/pending"
    if [ "$LINE" != "$RUN" ]; then
        # A timer alone is of a run that was cut off while it armed it; it would find nothing to take back.
        stop_timer
        say - gone
        return 0
    fi
    error=$(sh "$DIR/guard" 2>&1)
    first_line_of "$ROOT/pending"
    [ "$LINE" != "$RUN" ] || give_up "${error:-what takes the run back did not come to its end}"
    say - reverted
}
