"""One text setting of containers.conf(5), read without a TOML parser."""

from __future__ import annotations

import pytest

from remedy.edit.containers_conf import container_setting


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('[containers]\nshm_size = "2g"\n', "2g"),
        ("[containers]\nshm_size='2g' # why\n", "2g"),
        ("  [ containers ]  # a table\n  shm_size=65536\n", "65536"),
        ('[containers]\nshm_size = "1g"\nshm_size = "2g"\n', "2g"),
        ('[containers]\nshm_size = ""\n', ""),
        ('[containers]\n#shm_size = "2g"\n', ""),
        ('[containers]\nshm_size_max = "2g"\n', ""),
        ('[engine]\nshm_size = "2g"\n', ""),
        ('[containers]\n[engine]\nshm_size = "2g"\n[containers]\nx = 1\n', ""),
        ('shm_size = "2g"\n', ""),
        ("[containers]\nshm_size = 2g\n", ""),
        ("", ""),
    ],
)
def test_only_the_setting_of_the_table_containers_counts(content: str, value: str) -> None:
    assert container_setting(content.encode(), "shm_size") == value


def test_bytes_that_are_no_text_hide_no_setting() -> None:
    assert container_setting(b'# \xff\n[containers]\nshm_size = "2g"\n', "shm_size") == "2g"
