"""Approval: signatures of a plan's digest, made and checked by ssh-keygen.

``ssh-keygen -Y sign`` signs with any key that ssh has, also one in an agent or on a hardware token. What
counts is decided by an ``allowed_signers`` file (ssh-keygen(1), ALLOWED SIGNERS): who may sign, with which key,
in which namespace, until when. A signature lies beside its plan: ``plan.json.NAME.sig``.
"""

from __future__ import annotations

import glob
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import RefusedError, UsageError
from remedy.files import read_regular, write_whole
from remedy.plan import Plan
from remedy.text import quoted

# A signature made for something else (a git commit, a file) is no approval of a plan.
NAMESPACE = "remedy-plan@v1"
# Of whoever made the plan, who is no approver of it: one signature cannot pass for the other.
PLANNER = "remedy-planner@v1"
AUTHORS = "the author's own"
# Time for a person to type a passphrase, or to touch a token.
KEYGEN_SECONDS = 300
# Of a key of 16,384 bits, or with a certificate, a few thousand; and each costs two processes.
MOST_BYTES, MOST_SIGNATURES = 64 << 10, 64
# The form that ssh-keygen writes; it reads more than that, and a signature must match byte for byte.
_ARMOR = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=]+\r?\n)+-----END SSH SIGNATURE-----(\r?\n)?"
)


@dataclass(frozen=True)
class Approval:
    """A valid signature: whose, and the file it is in."""

    principal: str
    signature: Path


def message(plan: Plan) -> bytes:
    """Return what is signed: the digest, in a line that says what it is."""
    return f"remedy plan {plan.digest}\n".encode()


def planner_file(path: Path) -> Path:
    """Return where the signature of a plan's planner is."""
    return path.with_name(f"{path.name}.planner")


def sign(plan: Plan, path: Path, key: Path, *, planner: bool = False) -> Path:
    """Sign a plan and write the signature beside it.

    Args:
        plan: what is approved.
        path: the plan's file.
        key: a private key, or the public key of one in the agent.
        planner: whether it is signed as by whoever made it, and not approved.

    Returns:
        the signature's file.

    Raises:
        UsageError: the key cannot be used.
    """
    namespace = PLANNER if planner else NAMESPACE
    done = _keygen(["-Y", "sign", "-f", str(key), "-n", namespace], message(plan))
    if done.returncode != 0:
        # The banner has the reason, and the last line something else.
        open_to_others = b"UNPROTECTED PRIVATE KEY" in done.stderr
        reason = "others can read it" if open_to_others else _last_line(done.stderr)
        raise UsageError(
            f"{key}: ssh-keygen cannot sign with this key: {reason}",
            next_step="Name a private key that you can read, or the public key of one in the agent: --key FILE",
        )
    approval = path.with_name(f"{path.name}.{key.stem}.sig")
    signature = planner_file(path) if planner else approval
    write_whole(signature, done.stdout)
    return signature


def approvals(
    plan: Plan, path: Path, allowed_signers: Path, revoked: Path | None = None
) -> tuple[Approval, ...]:
    """Return the valid signatures beside a plan, at most one a principal, in whatever case it is spelled.

    Expired, revoked and foreign keys, and signatures of other plans, count for nothing.

    Args:
        plan: what was signed.
        path: its file.
        allowed_signers: who may sign.
        revoked: keys that count no more, a list of public keys or a KRL (ssh-keygen(1)).

    Raises:
        UsageError: the allowed_signers file is missing or empty, or the file of revoked keys is missing.
    """
    return _checked(plan, path, allowed_signers, revoked)[0]


def require(
    plan: Plan, path: Path, allowed_signers: Path, count: int, revoked: Path | None = None
) -> tuple[Approval, tuple[Approval, ...]]:
    """Return the planner's signature of a plan and its approvals, when they suffice.

    No approval is the planner's own, nor its author's: then others have read the plan. The planner is
    a principal of the same file as the approvers; of the author, login@machine, what is before the @ counts.

    Raises:
        RefusedError: the planner has not signed, or there are too few; the message has the reason for each
            signature that does not count.
        UsageError: the allowed_signers file cannot be used.
    """
    valid, invalid = _checked(plan, path, allowed_signers, revoked)
    file = planner_file(path)
    principal, reason = _signer(message(plan), file, allowed_signers, revoked, PLANNER)
    planner = {} if principal is None else {principal.casefold(): "the planner's own"}
    enough = [
        a
        for a in valid
        if a.principal.casefold() not in planner and _login(a.principal) != _login(plan.author)
    ]
    if len(enough) < count:
        principals = ", ".join(a.principal for a in enough) or "nobody"
        reasons = [
            f"{a.signature.name} is {planner.get(a.principal.casefold(), AUTHORS)}"
            for a in valid
            if a not in enough
        ]
        reasons += [f"{name}: {reason}" for name, reason in invalid]
        why = f" ({'; '.join(reasons)})" if reasons else ""
        required = "approval is" if count == 1 else "approvals are"
        raise RefusedError(
            f"{path}: {count} {required} required, and valid ones are from {principals}{why}",
            next_step=f"Have it approved: remedy approve {quoted(path)} --key KEY, by somebody "
            f"in {allowed_signers}.",
        )
    if principal is None:
        raise RefusedError(
            f"{path}: who made this plan has not signed it as its planner: {file.name}: {reason}",
            next_step=f"Have it signed: remedy approve {quoted(path)} --planner --key KEY. "
            f'{allowed_signers} has to allow the key for that: namespaces="{PLANNER}".',
        )
    return Approval(principal, file), tuple(enough)


def _login(principal: str) -> str:
    """Return what stands before the @, as one spells it in any case."""
    return principal.partition("@")[0].casefold()


def _checked(
    plan: Plan, path: Path, allowed_signers: Path, revoked: Path | None
) -> tuple[tuple[Approval, ...], list[tuple[str, str]]]:
    """Return the signatures that count, and the file names of the others with the reason."""
    try:
        lines = allowed_signers.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{allowed_signers}: {getattr(error, 'strerror', None) or 'it is no text'}",
            next_step="Approval needs a file of allowed signers: ssh-keygen(1), ALLOWED SIGNERS.",
        ) from error
    if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        raise UsageError(
            f"{allowed_signers} is empty: nobody may approve",
            next_step=f'Add lines such as: alice@example.org namespaces="{NAMESPACE}" ssh-ed25519 AAAA...',
        )
    if revoked is not None and not revoked.is_file():
        raise UsageError(
            f"{revoked}: there is no such file of revoked keys",
            next_step="Make it, empty if no key is revoked, or take approval.revoked_keys out of remedy.yaml.",
        )
    valid: dict[str, Approval] = {}
    invalid: list[tuple[str, str]] = []
    files = sorted(path.parent.glob(f"{glob.escape(path.name)}.*.sig"))
    if len(files) > MOST_SIGNATURES:
        reason = f"more than {MOST_SIGNATURES} signatures: move those away that do not count"
        invalid.append((f"{path.name}.*.sig", reason))
    for signature in files[:MOST_SIGNATURES]:
        principal, reason = _signer(message(plan), signature, allowed_signers, revoked)
        if principal is not None:
            valid.setdefault(principal.casefold(), Approval(principal, signature))
        else:
            invalid.append((signature.name, reason))
    return tuple(valid.values()), invalid


def _signer(
    text: bytes,
    signature: Path,
    allowed_signers: Path,
    revoked: Path | None,
    namespace: str = NAMESPACE,
) -> tuple[str | None, str]:
    """Return the principal whose signature this is; None and the reason when it is not valid.

    ``find-principals`` only proposes; ``verify`` decides. The time is ssh-keygen's own: a caller that names it
    could approve with an expired key.
    """
    try:
        armor = read_regular(signature, MOST_BYTES)
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    if not _ARMOR.fullmatch(armor):
        return None, "not a signature, or changed after it was made"
    with tempfile.NamedTemporaryFile(prefix="remedy-") as copy:
        # Those bytes are judged, whatever is put in their place meanwhile.
        copy.write(armor)
        copy.flush()
        files = ["-f", str(allowed_signers), "-s", copy.name]
        return _principal(text, files, revoked, namespace)


def _principal(
    text: bytes, files: Sequence[str], revoked: Path | None, namespace: str
) -> tuple[str | None, str]:
    """Return whose signature the files are about, as ssh-keygen has it; None and its reason for nobody's."""
    revocations = [] if revoked is None else ["-r", str(revoked)]
    proposed = _keygen(["-Y", "find-principals", *files], b"")
    output = proposed.stderr
    for principal in proposed.stdout.decode("utf-8", "replace").split():
        check = ["-Y", "verify", "-I", principal, "-n", namespace, *files, *revocations]
        done = _keygen(check, text)
        if done.returncode == 0:
            return principal, ""
        output = done.stdout + done.stderr
    if b"rincipal matched" in output:
        return None, "its key is not allowed for this purpose, or not at this time"
    return None, _last_line(output)


def _keygen(arguments: Sequence[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", *arguments],
            input=text,
            capture_output=True,
            check=False,
            timeout=KEYGEN_SECONDS,
        )
    except FileNotFoundError as error:
        raise UsageError(
            "ssh-keygen is not installed on this machine",
            next_step="Install the OpenSSH client: apt-get install openssh-client",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RefusedError(
            f"ssh-keygen did not answer within {KEYGEN_SECONDS} s",
            next_step="See whether the ssh agent answers: ssh-add -l. A key file needs none: --key FILE.",
        ) from error


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "ssh-keygen gave no reason"
