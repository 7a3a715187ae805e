# What a plan may do before a person has read it. judge.py evaluates this over a plan; each message of `deny` is a reason
# not to carry it out.
package remedy.plan

import rego.v1

most_hosts := 8

hosts := {change.host | some change in input.plan.changes}

deny contains message if {
	count(hosts) > most_hosts
	message := sprintf("%d hosts would be changed, and %d may be", [count(hosts), most_hosts])
}

deny contains message if {
	some change in input.plan.changes
	change.risk == "high"
	message := sprintf("%s: %s: high risk", [change.host, change.title])
}

deny contains message if {
	some change in input.plan.changes
	not change.reversible
	message := sprintf("%s: %s: cannot be undone", [change.host, change.title])
}

deny contains message if {
	some change in input.plan.changes
	endswith(change.restarts, "which stops")
	message := sprintf("%s: %s: %s", [change.host, change.title, change.restarts])
}

deny contains message if {
	some finding in input.plan.findings
	finding.kind == "unknown"
	message := sprintf("%s: %s: unknown", [subject(finding), finding.title])
}

# A plan that these rules were not written for is not let through.
deny contains "not a plan of format 1" if {
	object.get(input, ["plan", "format_version"], 0) != 1
}

subject(finding) := finding.host if finding.host != null

subject(finding) := "the fleet" if finding.host == null
