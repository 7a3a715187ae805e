"""What looks like a secret: the names that people use, and not the settings of the libraries."""

from __future__ import annotations

import shutil
import subprocess
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.secret import holds_password, looks_secret, shell_hints, shell_pattern

SECRET = (
    *("WANDB_KEY", "WANDB_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY"),
    *(
        "AWS_SESSION_TOKEN",
        "GITHUB_PAT",
        "AZURE_PAT",
        "DB_PASS",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SENTRY_DSN",
    ),
    *(
        "OPENAI_API_KEY",
        "SSH_PASSPHRASE",
        "GCP_CREDS",
        "NETRC_AUTH",
        "_sudo_password",
        "registry_pat",
    ),
    *(
        "SSHPASS",
        "AZURE_STORAGE_CONNECTION_STRING",
        "SLACK_WEBHOOK_URL",
        "BLOB_SAS",
        "BEARER",
        "PASSCODE",
    ),
)
# Where small and capital letters are words apart.
MIXED = (
    "wandbKey",
    "signingKey",
    "dbPwd",
    "ghPat",
    "hubAuth",
    "sshKeys_old",
    "s3Creds",
    "userPass.1",
)
PLAIN = (
    *(
        "NCCL_SOCKET_IFNAME",
        "NCCL_IB_PKEY",
        "PATH",
        "LD_LIBRARY_PATH",
        "TOKENIZERS_PARALLELISM",
        "KEYBOARD",
    ),
    *(
        "NCCL_DEBUG",
        "MONKEY",
        "PATTERN",
        "COMPASS_DIR",
        "UCX_TLS",
        "GLOO_SOCKET_IFNAME",
        "XAUTHORITY",
    ),
    *(
        "ncclKeyring",
        "turnKeyed",
        "torchPath",
        "CompassDir",
        "NcclIbPkey",
        "MASSASINO",
        "CUDA_PIN_MEMORY",
    ),
)


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)
    assert looks_secret(name.lower())


@pytest.mark.parametrize("name", MIXED)
def test_names_whose_words_begin_with_a_capital(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", PLAIN)
def test_names_of_settings(name: str) -> None:
    assert not looks_secret(name)


WORD = st.text("ABCXYZ09", min_size=1, max_size=8)


@given(
    st.lists(WORD), st.sampled_from(["KEY", "PAT", "PWD", "DSN", "TOKEN", "CREDS"]), st.lists(WORD)
)
def test_a_word_for_a_secret_counts_wherever_it_stands(
    before: list[str], word: str, after: list[str]
) -> None:
    assert looks_secret("_".join([*before, word, *after]))


@given(WORD, WORD, st.sampled_from(["http", "postgresql", "redis", "amqp"]))
def test_a_password_in_a_url(user: str, password: str, scheme: str) -> None:
    assert holds_password(f"{scheme}://{user}:{password}@host:1/x")
    assert not holds_password(f"{scheme}://{user}@host:1/x")
    assert not holds_password(f"{scheme}://host:1/{user}:{password}")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_no_secret_is_without_a_hint_on_a_host(shell: str) -> None:
    made = {f"{word}{end}" for word in SECRET for end in ("", "_X", "1", "=x", '": "x')}
    script = "set -f\nwhile IFS= read -r name; do\nhas=\nfor hint in $hints; do\n"
    script += 'case "$name " in *$hint*) has=1 ;; esac\ndone\n[ "$has" ] || printf "%s\\n" "$name"\ndone\n'
    done = subprocess.run(
        [shell, "-c", f"hints='{' '.join(shell_hints())}'\n{script}"],
        input="\n".join(sorted(made)) + "\nPATH\nNCCL_DEBUG\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["PATH", "NCCL_DEBUG"]


@pytest.mark.parametrize("tool", ["sed", "busybox sed"])
def test_hosts_and_this_machine_decide_alike(tool: str) -> None:
    if shutil.which(tool.split()[0]) is None:
        pytest.skip(f"{tool} is not installed")
    words = (
        "",
        "A",
        "KEY",
        "PKEY",
        "pat",
        "PATH",
        "TOKEN",
        "TOKENIZERS",
        "TOKENI",
        "Tokeni_",
        "API",
        "Pwd",
        "xKey",
        "dsn",
    )
    made = {
        f"{a}{mark}{b}{mark}{c}"
        for a, b, c in product(words, repeat=3)
        for mark in ("", "_", ".", "-")
    }
    names = sorted({*SECRET, *MIXED, *PLAIN, *made} - {""})
    done = subprocess.run(
        [*tool.split(), "-n", f"/^{shell_pattern()}$/p"],
        input="\n".join(names) + "\n",
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.splitlines() == [name for name in names if looks_secret(name)]
