"""Judge a plan by a policy in Rego: remedy show plan.json --json | python judge.py plan.rego

Prints what the policy denies. Exit codes: 0 nothing, 1 something, 2 the policy gave no answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from regopy import Interpreter

QUERY = "data.remedy.plan.deny"


def denied(policy: str, document: object) -> list[str]:
    """Return the messages of a policy about a document; a policy that does not say is an error."""
    rego = Interpreter()
    rego.add_module("policy", policy)
    rego.set_input(document)
    answer = json.loads(str(rego.query(QUERY)))
    return sorted(answer["expressions"][0])


def main() -> int:
    """Judge the document on standard input by the policy that the command line names."""
    try:
        messages = denied(Path(sys.argv[1]).read_text(encoding="utf-8"), json.load(sys.stdin))
    except Exception as error:
        print(f"the policy gave no answer: {error}", file=sys.stderr)
        return 2
    print(*messages, sep="\n", end="\n" * bool(messages))
    return bool(messages)


if __name__ == "__main__":
    sys.exit(main())
