"""The heads of pages, and headings that have something below them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remedy.report.pages.plan import plan_page
from remedy.report.pages.run import run_page
from tests.unit.report.pages.samples import WHO, first_plan, good, proof_page, red, run

RUN = "20260131T120000Z-0a1b2c3d"


def test_the_page_of_a_plan_has_its_run_and_the_inventory_from_the_root() -> None:
    page = plan_page(first_plan(8), 0, "/srv/a/inventory.py", RUN)
    assert "<dt>inventory</dt><dd>/srv/a/inventory.py</dd>" in page
    assert f"<dt>run</dt><dd>{RUN}</dd>" in page


@pytest.mark.parametrize(("mode", "name"), [("rollback", "takes back"), ("apply", "resumes")])
def test_the_page_of_a_run_says_what_it_does_with_a_former_run(mode: str, name: str) -> None:
    page = run_page(replace(run(good(8), None, mode), of=RUN), WHO)
    assert f"<dt>{name}</dt><dd>{RUN}</dd>" in page


def test_a_proof_without_a_step_has_no_heading_of_the_ladder() -> None:
    verdict = red(4)
    assert "The ladder" in proof_page(verdict)
    assert "The ladder" not in proof_page(verdict.model_copy(update={"rungs": ()}))
