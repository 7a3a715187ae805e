"""What is shown of a line that is too long."""

from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.catalogue import Symptom, catalogue
from remedy.report.passages import GAP, passage

# As of torch 2.13, where rank 0 of a job is not reached.
CONNECT = (
    "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of "
    "(gpu01, 29500). The client socket has failed to connect to 10.0.0.1:29500 (errno: 113 - No route to host)."
)


def test_a_line_that_fits_is_shown_whole() -> None:
    assert passage("  CUDA error: out of memory\n", "", 100) == "CUDA error: out of memory"


def test_of_an_exception_its_name_and_its_reason_are_shown() -> None:
    shown = passage(CONNECT, "", 100)
    assert shown.startswith("torch.distributed.DistNetworkError: The client socket has")
    assert shown.endswith("(errno: 113 - No route to host).")
    assert len(shown) <= 100


def test_in_the_middle_of_a_very_long_line_the_words_that_were_recognised_are_shown() -> None:
    entry = next(entry for entry in catalogue() if entry.id == "nccl-no-interface")
    words = entry.examples[0]
    steps = '{"step": 1, "loss": 2.5} ' * 40
    record = f"{steps}{words} {steps}"
    shown = passage(record, entry.id, 200)
    assert any(literal in shown for literal in entry.literals)
    assert len(shown) <= 200


@given(
    before=st.integers(0, 3_000),
    after=st.integers(0, 3_000),
    most=st.integers(100, 300),
    symptom=st.sampled_from(catalogue()),
)
def test_wherever_they_stand_they_are_shown(
    before: int, after: int, most: int, symptom: Symptom
) -> None:
    words = min(symptom.literals, key=len)
    text = f"{'-' * before}{words}{'-' * after}"
    shown = passage(text, symptom.id, most)
    assert len(shown) <= most
    if len(words) <= most // 4:
        assert any(literal in shown for literal in symptom.literals), shown
    if len(text) <= most:
        assert shown == text.strip()
    else:
        assert GAP.strip() in shown
