"""What a host is about to do by itself: take back an unconfirmed change, or what somebody scheduled."""

from __future__ import annotations

import secrets

from remedy.apply.job import Guard, Job
from remedy.apply.script import render_changes
from remedy.apply.start import new_run_id
from remedy.lab.fault import LATER, REPAIRED, by_hand, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host
from remedy.plan import Change, CommandAction

SECONDS = 20

_TABLE = CommandAction(
    observe="nft list table inet lab_unconfirmed >/dev/null 2>&1 && echo there || echo gone",
    before="gone",
    after="there",
    do="nft add table inet lab_unconfirmed",
    undo="nft delete table inet lab_unconfirmed",
)


@fault(
    "unconfirmed-change",
    f"the controller died before it confirmed a change, which the host takes back in {SECONDS} s",
    repair=REPAIRED,
    log=no_log("a job runs as before; it is remedy that must wait"),
)
def unconfirmed_change(host: Host) -> None:
    change = Change(
        id="01-firewall",
        host=host.name,
        remedy="firewall",
        title="add the table inet lab_unconfirmed",
        reason="a run that was cut off",
        label="firewall-ports",
        guarded=True,
        action=_TABLE,
    )
    job = Job(run=new_run_id(), nonce=secrets.token_hex(8), by="gone@controller")
    host.must("sh -s", stdin=render_changes(job, [change], {}, Guard(SECONDS)))


@fault(
    "scheduled-change",
    "somebody's timer takes the rules of nftables away in 20 minutes",
    repair=by_hand("nft flush ruleset"),
    log=LATER,
)
def scheduled_change(host: Host) -> None:
    host.must(
        "systemctl -q stop take-back.timer 2>/dev/null;"
        " systemd-run -q --unit=take-back --on-active=20m nft flush ruleset"
    )


@fault(
    "scheduled-reboot",
    "a reboot is scheduled, in 20 minutes",
    repair=by_hand("a reboot is scheduled"),
    log=LATER,
)
def scheduled_reboot(host: Host) -> None:
    host.must(["shutdown", "-r", "+20"])
