"""Archives are unpacked safely: what leaves the folder, collides, links or grows too large is refused."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from agent.port import archive
from api.upload import safe_name
from sandbox.errors import InputError


def unpack(data: bytes, name: str, folder: Path) -> list[str]:
    """Unpack bytes as a file of that name; returns the relative paths written."""
    folder.mkdir(exist_ok=True)
    packed = folder.parent / f"{folder.name}-{name}"
    packed.write_bytes(data)
    try:
        archive.unpack(packed, folder)
    finally:
        packed.unlink()
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tar_of(files: dict[str, bytes], *extra: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra:
            archive.addfile(info)
    return buffer.getvalue()


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(("pack", "name"), [(zip_of, "p.zip"), (tar_of, "p.tar.gz"), (tar_of, "p.tgz")])
def test_plain_trees_are_unpacked(tmp_path: Path, pack: object, name: str) -> None:
    files = {"src/a.cu": b"__global__ void k() {}", "include/b.h": b"#pragma once\n", "README": b""}
    assert sorted(unpack(pack(files), name, tmp_path)) == sorted(files)  # type: ignore[operator]
    assert all((tmp_path / n).read_bytes() == d for n, d in files.items())


@pytest.mark.parametrize("bad", ["../x", "/etc/x", "a/../../x", "C:/x", "..\\x"])
@pytest.mark.parametrize(("pack", "name"), [(zip_of, "p.zip"), (tar_of, "p.tar.gz")])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, pack: object, name: str, bad: str) -> None:
    folder = tmp_path / "in"
    with pytest.raises(InputError):
        unpack(pack({bad: b"x"}), name, folder)  # type: ignore[operator]
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize(
    "info",
    [
        special("l", tarfile.SYMTYPE, "/etc/passwd"),
        special("h", tarfile.LNKTYPE, "a"),
        special("f", tarfile.FIFOTYPE),
        special("c", tarfile.CHRTYPE),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, info: tarfile.TarInfo) -> None:
    with pytest.raises(InputError, match="no plain file"):
        unpack(tar_of({"a": b"x"}, info), "p.tar.gz", tmp_path)


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("l")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match="is a link"):
        unpack(buffer.getvalue(), "p.zip", tmp_path)


def test_bombs_are_stopped_by_what_was_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "MAX_FILES", 50)
    bomb = zip_of({"big": bytes(4 << 20)})
    assert len(bomb) < 10_000
    with pytest.raises(InputError, match="more than is allowed"):
        unpack(bomb, "p.zip", tmp_path / "bomb")
    with pytest.raises(InputError, match="more than 50 files"):
        unpack(tar_of({f"f{i}": b"" for i in range(60)}), "p.tar.gz", tmp_path / "many")


@pytest.mark.parametrize(("pack", "name"), [(zip_of, "p.zip"), (tar_of, "p.tar.gz")])
def test_damaged_archives_are_bad_input_never_a_fault(tmp_path: Path, pack: object, name: str) -> None:
    whole = pack({"a.cu": b"x" * 5000, "b.cu": b"y" * 5000})  # type: ignore[operator]
    rng = random.Random(3)
    for case in range(120):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if case % 3 == 0:
            del data[rng.randrange(len(data)) :]
        try:
            unpack(bytes(data), name, tmp_path / str(case))
        except InputError:
            continue


@pytest.mark.parametrize("name", ["k.py", "a b.cu", "x-1.2+rocm.zip"])
def test_usual_file_names_pass(name: str) -> None:
    assert safe_name(name) == name
    assert safe_name(f"C:\\dir\\{name}") == name


@pytest.mark.parametrize("name", [None, "", "..", ".hidden", "-rf", "a\nb.py", "é.py", "x" * 200])
def test_unusual_file_names_are_refused(name: str | None) -> None:
    with pytest.raises(InputError):
        safe_name(name)
