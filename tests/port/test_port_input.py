"""What may be given: files, folders, archives, repositories, Python files; and everything that may not."""

import io
import tarfile
import zipfile
from pathlib import Path

import git
import pytest
from typer.testing import CliRunner

from agent.port.intake import open_project
from agent.port.loop import port
from agent.port.request import PortRequest
from api.cli import app
from sandbox.errors import InputError

KERNEL = "#include <cuda_runtime.h>\n__global__ void k(float* x) { x[threadIdx.x] *= 2.f; }\n"


def refused(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        port(PortRequest(path, **options))  # type: ignore[arg-type]
    assert caught.value.remedy
    return str(caught.value)


def test_not_cuda(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int main() { return 0; }\n")
    assert "holds no CUDA" in refused(tmp_path / "a.cu")


@pytest.mark.parametrize(
    ("text", "line"), [(KERNEL + "void f() {\n", 3), (KERNEL + "}\n", 3), (KERNEL + "void g(int x {}\n", 3)]
)
def test_unbalanced_code_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "a.cu").write_text(text)
    assert f"a.cu:{line}: " in refused(tmp_path / "a.cu")


def test_arms_that_each_open_a_brace_are_balanced(tmp_path: Path) -> None:
    text = "#if A\n__global__ void k(int* x) {\n#else\n__global__ void k(float* x) {\n#endif\n  x[0] = 1;\n}\n"
    (tmp_path / "a.cu").write_text(text)
    with open_project(PortRequest(tmp_path / "a.cu")) as project:
        assert project.units == ["a.cu"]


def test_missing_include_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('#include "not_here.cuh"\n' + KERNEL)
    message = refused(tmp_path / "a.cu")
    assert "not_here.cuh" in message and "-I FOLDER" in message
    assert "a.cu:1:" in message


@pytest.mark.parametrize("name", ["nothing.log", "."])
def test_a_log_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.cu").write_text(KERNEL)
    done = CliRunner().invoke(app, ["port", str(tmp_path / "a.cu"), "--log", str(tmp_path / name)])
    assert isinstance(done.exception, InputError)
    assert "the log cannot be read" in str(done.exception)


def test_missing_include_is_found_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "scale.h").write_text("#define SCALE 3.f\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").write_text(
        "#include <scale.h>\n__global__ void k(float* x) { x[threadIdx.x] *= SCALE; }\n"
    )
    result = port(PortRequest(tmp_path / "src" / "a.cu", include_folders=(tmp_path / "headers",), execute=False))
    assert result.builds


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.cu", b"x" * (10 * 2**20), "larger than"),
        ("a.cu", b"\x7fELF\0\0\0\0" + KERNEL.encode(), "binary"),
        ("a.cu", KERNEL.encode() + b"// \xff\xfe\n", "UTF-8"),
        ("a.txt", KERNEL.encode(), "file type"),
        ("a.zip", b"PK not a zip", "cannot be read"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert words in refused(tmp_path / name)


def test_missing_path_and_unknown_target(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "nothing.cu")
    (tmp_path / "a.cu").write_text(KERNEL)
    assert "no target of a port" in refused(tmp_path / "a.cu", targets=("sm_90",))


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("name", ["../out.cu", "/etc/out.cu", "a/../../out.cu", "..\\out.cu", "C:/out.cu"])
def test_members_that_leave_the_archive(tmp_path: Path, name: str) -> None:
    archive = zipped(tmp_path / "a.zip", {"k.cu": KERNEL.encode(), name: b"x"})
    before = set(tmp_path.parent.rglob("out.cu"))
    assert "leaves the archive" in refused(archive)
    assert set(tmp_path.parent.rglob("out.cu")) == before


def test_zip_bomb(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"k.cu": KERNEL.encode(), "big.h": b"\n" * (64 * 2**20)})
    assert archive.stat().st_size < 2**20
    assert "more than is allowed" in refused(archive)


def test_links_in_a_tar(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        data = KERNEL.encode()
        member = tarfile.TarInfo("k.cu")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("link.cu")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert "no plain file" in refused(tmp_path / "a.tar.gz")


def test_load_inline_texts_are_found(tmp_path: Path) -> None:
    source = f'from torch.utils.cpp_extension import load_inline\ncuda_source = """\n{KERNEL}"""\nother = "text"\n'
    (tmp_path / "ext.py").write_text(source)
    with open_project(PortRequest(tmp_path / "ext.py")) as project:
        assert project.units == ["ext.cuda_source.cu"]
        assert project.sources["ext.cuda_source.cu"].embedded == "ext.py:cuda_source"


def test_a_repository_of_two_files_end_to_end(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "third_party").mkdir()
    (repo / "third_party" / "other.cu").write_text(KERNEL)
    (repo / "src" / "reduce.cuh").write_text(
        "#pragma once\n__device__ inline int warp_sum(int v) {\n"
        "  for (int o = warpSize / 2; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);\n  return v;\n}\n"
    )
    (repo / "src" / "main.cu").write_text(
        '#include "reduce.cuh"\n#include <cuda_runtime.h>\n'
        "__global__ void k(const int* x, int* y, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  int s = warp_sum(i < n ? x[i] : 0);\n"
        "  if (i < n) y[i] = s;\n}\nvoid run(const int* x, int* y, int n) { k<<<2, 128>>>(x, y, n); }\n"
    )
    repository = git.Repo.init(repo)
    repository.index.add(["src/reduce.cuh", "src/main.cu"])
    repository.index.commit("start", author=git.Actor("a", "a@example.org"), committer=git.Actor("a", "a@example.org"))
    out = tmp_path / "out"
    result = port(PortRequest(repo, out=out))
    assert result.outcome == "builds-now", result.summary
    assert {f.new_path for f in result.files} == {"src/main.hip", "src/reduce.cuh"}
    assert (out / "src" / "main.hip").read_text().startswith('#include "../shims/wavesmith_compat.h"')
    assert not (out / "third_party").exists()
    clone = git.Repo.clone_from(str(repo), tmp_path / "clone")
    clone.git.apply("--index", str(out / "patch.diff"))
    assert (tmp_path / "clone" / "src" / "main.hip").read_text() == (out / "src" / "main.hip").read_text()
    assert (tmp_path / "clone" / "shims" / "wavesmith_compat.h").exists()


def test_a_failed_build_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(KERNEL)
    log = "a.hip:3:7: error: use of undeclared identifier '__ldcs'\nx.cu(12): error: identifier \"foo\" is undefined\n"
    result = port(PortRequest(tmp_path / "a.cu", log=log, execute=False))
    entries = [a for a in result.rounds[0].applied if a.rule == "log"]
    assert [a.file for a in entries] == ["a.cu", "x.cu"]


def test_in_place_writes_one_file_for_both(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(KERNEL)
    result = port(PortRequest(tmp_path / "a.cu", style="inplace", out=tmp_path / "out", execute=False))
    text = (tmp_path / "out" / "a.cu").read_text()
    assert "#if defined(__HIP_PLATFORM_AMD__)" in text and "cuda_runtime.h" in text and "hip/hip_runtime.h" in text
    assert [f.new_path for f in result.files] == ["a.cu"]
