"""A kernel file is read once, at the border, and refused there in one sentence."""

from pathlib import Path

import pytest

from sandbox.errors import InputError
from sandbox.kernel import MAX_SOURCE_BYTES, Kernel, Language, load_kernel, parse_kernel


def test_digest_tells_programs_apart_and_ignores_nothing() -> None:
    base = Kernel("x = 1\n", "a.py", Language.TRITON)
    others = [
        base.with_source("x = 2\n"),
        Kernel("x = 1\n", "b.py", Language.TRITON),
        Kernel("x = 1\n", "a.py", Language.TRITON, {"h.py": ""}),
        Kernel("x = 1\n", "a.py", Language.TRITON, {"h.py": "y"}),
    ]
    assert len({base.digest, *(o.digest for o in others)}) == 5
    assert base.digest == Kernel("x = 1\n", "a.py", Language.TRITON).digest


def test_round_trip_through_a_folder(tmp_path: Path) -> None:
    kernel = Kernel("x = 1\n", "a.py", Language.TRITON, {"pkg/h.py": "y = 2\n"})
    path = kernel.write_to(tmp_path)
    assert load_kernel(path).source == kernel.source
    assert (tmp_path / "pkg/h.py").read_text() == "y = 2\n"


def test_windows_text_is_accepted() -> None:
    assert parse_kernel(b"\xef\xbb\xbfx = 1\r\ny = 2\r\n", "a.py").source == "x = 1\ny = 2\n"


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"x = (\n", "a.py", r"a\.py:1: Python cannot parse it: '\(' was never closed\. Correct the syntax\."),
        (b"a = 1\nb = \xff\n", "a.py", r"a\.py:2: the file is not UTF-8 text\."),
        (b"a\0b", "a.cu", r"a\.cu: the file holds NUL bytes"),
        (b"", "a.txt", r"a\.txt: this file type is not a kernel source\. Give a file ending in \.py"),
        (b"", "Makefile", "this file type"),
    ],
)
def test_bad_input_is_one_sentence_with_place_and_remedy(data: bytes, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_kernel(data, name)


def test_missing_and_oversized_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a folder"):
        load_kernel(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        load_kernel(tmp_path / "none.py")
    big = tmp_path / "big.py"
    big.write_bytes(b"#" * (MAX_SOURCE_BYTES + 1))
    with pytest.raises(InputError, match="larger than 4 MiB"):
        load_kernel(big)
