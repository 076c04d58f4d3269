"""Fills the private toolchain folder from the package mirror this machine already uses. No package is installed.

Order: Debian testing's and unstable's HIP headers; when those have moved out of reach, the stable release's older
headers with device bitcode from an installed triton and control constants written here. Packages are fetched by apt
itself through a state folder of our own, so its signatures and hashes hold; what was unpacked is recorded with SHA-256
in the manifest.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import ToolMissing
from sandbox.toolchain import MANIFEST, Origin, Progress, file_digest, find_clang

_COMPILER_RELEASE = 22
_COMPILER_LIBRARIES = ("libclang-cpp{}", "libclang-common-{}-dev", "libllvm{}", "llvm-{}-linker-tools", "libz3-4")
_HEADER_PACKAGES = (
    "libamdhip64-dev", "hipify-perl", "librocprim-dev", "libhipcub-dev", "librocthrust-dev", "librocrand-dev",
    "libhiprand-dev", "libhipblas-dev", "libhipblas-common-dev", "librocblas-dev", "libhipfft-dev", "libhipsparse-dev",
    "libhipsolver-dev", "libhipblaslt-dev",
)  # fmt: skip
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PROBE = "#include <hip/hip_runtime.h>\n__global__ void k(float* x) { x[threadIdx.x] = __expf(x[0]); }\n"
_CONTROL_SWITCHES = {
    "daz_opt": "daz_opt",
    "unsafe_math": "unsafe_math_opt",
    "finite_only": "finite_only_opt",
    "correctly_rounded_sqrt": "correctly_rounded_sqrt32",
}
"""Module name to the constant it defines."""
_ISA_NUMBERS = {"90a": 9010, "942": 9402, "950": 9500}


@dataclass(frozen=True)
class _Apt:
    """apt with a state folder of our own: reads the system's package lists, writes none of its files."""

    state: Path
    source: str

    def __post_init__(self) -> None:
        for name in ("lists/partial", "cache/archives/partial"):
            (self.state / name).mkdir(parents=True, exist_ok=True)
        (self.state / "sources.list").write_text(self.source, encoding="utf-8")

    def run(self, program: str, *words: str, cwd: Path | None = None) -> str:
        options = [
            f"-oDir::Etc::SourceList={self.state / 'sources.list'}", "-oDir::Etc::SourceParts=/dev/null",
            f"-oDir::State::Lists={self.state / 'lists'}", f"-oDir::Cache={self.state / 'cache'}",
            f"-oAPT::Sandbox::User={_user_name()}", "-oAcquire::Languages=none", "-oDebug::NoLocking=1",
            "-oAcquire::Retries=3", "-oDPkg::Post-Invoke=", "-oAPT::Update::Post-Invoke-Success=",
        ]  # fmt: skip
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        done = subprocess.run(
            [program, *options, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=900
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise ToolMissing(f"{program} {words[0]} failed: {reason}")
        return done.stdout


def _user_name() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def prepare(prefix: Path, progress: Progress) -> None:
    """Fill `prefix`; one process at a time. Raises `ToolMissing` when this machine's packages cannot provide it."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise ToolMissing(
            "This machine has neither ROCm nor apt. Install ROCm (its compiler and headers are enough), "
            "or run in the container image."
        )
    with _locked(prefix):
        if (prefix / MANIFEST).exists() and find_clang(prefix / "compiler")[0]:
            return
        with tempfile.TemporaryDirectory(prefix="wavesmith-toolchain-", dir=prefix.parent) as name:
            staged = Path(name) / "staged"
            staged.mkdir()
            packages = _get_compiler(staged, Path(name), progress)
            origin, hip_root, bitcode, more = _get_headers(staged, Path(name), progress)
            _write_manifest(staged, origin, hip_root, bitcode, packages + more)
            _probe(staged, hip_root, bitcode, origin, progress)
            if prefix.exists():
                shutil.rmtree(prefix)
            staged.rename(prefix)
    progress(f"toolchain ready in {prefix}")


@contextmanager
def _locked(prefix: Path) -> Iterator[None]:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with (prefix.parent / f"{prefix.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _get_compiler(staged: Path, scratch: Path, progress: Progress) -> list[str]:
    if find_clang(staged / "compiler")[0]:
        return []
    progress(f"fetching clang {_COMPILER_RELEASE} (about 110 MB)")
    apt = _Apt(scratch / "apt-system", _system_sources())
    apt.run("apt-get", "update")
    archives = apt.state / "cache" / "archives"
    wanted = [f"{name}-{_COMPILER_RELEASE}" for name in ("clang", "lld", "llvm", "clang-tools")]
    try:
        apt.run("apt-get", "install", "-y", "--no-install-recommends", "--download-only", *wanted)
    except ToolMissing:  # a machine with broken package states: take the compiler's own packages as they are
        own = [name.format(_COMPILER_RELEASE) for name in _COMPILER_LIBRARIES]
        apt.run("apt-get", "download", *wanted, *own, cwd=archives)
    packages = _unpack(sorted(archives.glob("*.deb")), staged / "compiler")
    if find_clang(staged / "compiler")[0] is None:
        raise ToolMissing(f"the packages of clang {_COMPILER_RELEASE} hold no usable compiler")
    return packages


def _get_headers(staged: Path, scratch: Path, progress: Progress) -> tuple[Origin, Path, Path, list[str]]:
    root = staged / "headers"
    hip_root = root / "usr"
    try:
        progress("fetching HIP headers and device bitcode (about 4 MB)")
        packages = _fetch(_suite_apt(scratch, ("forky", "sid")), root, newest_bitcode=_COMPILER_RELEASE)
        bitcode = next(iter(root.rglob("ocml.bc"))).parent
        if all((bitcode / f"oclc_isa_version_{isa}.bc").exists() for isa in ("942", "950")):
            return "prefix", hip_root, bitcode, packages
    except (ToolMissing, StopIteration) as e:
        progress(f"current headers are out of reach ({e}); using the frozen set")
    shutil.rmtree(root, ignore_errors=True)
    packages = _fetch(_suite_apt(scratch, ("trixie",)), root, newest_bitcode=None)
    bitcode = root / "bitcode"
    _synthesise_bitcode(_triton_bitcode(), bitcode, staged)
    return "frozen", hip_root, bitcode, packages


def _fetch(apt: _Apt, root: Path, *, newest_bitcode: int | None) -> list[str]:
    """Download what the suites have of the wanted packages and unpack it; the HIP headers themselves must be there."""
    apt.run("apt-get", "update")
    wanted = list(_HEADER_PACKAGES)
    if newest_bitcode is not None:
        listed = apt.run("apt-cache", "search", "--names-only", "^rocm-device-libs-[0-9]+$").split("\n")
        releases = [int(m[1]) for line in listed if (m := re.match(r"rocm-device-libs-(\d+) ", line))]
        readable = [r for r in releases if r <= newest_bitcode]  # a compiler cannot read newer bitcode than itself
        if not readable:
            raise ToolMissing("no readable rocm-device-libs package")
        wanted.append(f"rocm-device-libs-{max(readable)}")
    folder = apt.state / "debs"
    folder.mkdir(exist_ok=True)
    known = set(re.findall(r"^Package: (\S+)$", apt.run("apt-cache", "dumpavail"), re.M))
    present = [name for name in wanted if name in known]
    if "libamdhip64-dev" not in present:
        raise ToolMissing("no libamdhip64-dev package")
    apt.run("apt-get", "download", *present, cwd=folder)
    return _unpack(sorted(folder.glob("*.deb")), root)


def _unpack(archives: Sequence[Path], root: Path) -> list[str]:
    packages = []
    for archive in archives:
        subprocess.run(["dpkg", "-x", str(archive), str(root)], check=True, capture_output=True)
        fields = subprocess.run(
            ["dpkg-deb", "-f", str(archive), "Package", "Version"], check=True, capture_output=True, text=True
        ).stdout
        found = dict(line.split(": ", 1) for line in fields.strip().splitlines())
        packages.append(f"{found['Package']}={found['Version']}")
    return packages


def _suite_apt(scratch: Path, suites: Sequence[str]) -> _Apt:
    mirror = _mirror()
    signed = f" signed-by={_KEYRING}" if _KEYRING.exists() else ""
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout
    lines = [f"deb [arch={architecture.strip()}{signed}] {mirror} {suite} main" for suite in suites]
    return _Apt(scratch / f"apt-{'-'.join(suites)}", "\n".join(lines) + "\n")


def _source_entries() -> Iterator[tuple[list[str], list[str], list[str], str]]:
    """(URIs, suites, components, options) of every `deb` entry of the system, from both file formats."""
    folder = Path("/etc/apt/sources.list.d")
    for path in sorted(folder.glob("*.sources")) if folder.is_dir() else []:
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            keys = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.+)$", block, re.M))
            if "deb" in keys.get("Types", "").split() and keys.get("Enabled", "yes") != "no":
                signed = keys.get("Signed-By", "")
                options = f"[signed-by={signed}] " if signed.startswith("/") else ""
                yield keys["URIs"].split(), keys["Suites"].split(), keys.get("Components", "").split(), options
    for path in [Path("/etc/apt/sources.list"), *(sorted(folder.glob("*.list")) if folder.is_dir() else [])]:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for options, uri, suite, rest in re.findall(r"^deb[ \t]+(\[[^\]]*\] )?[ \t]*(\S+) (\S+)(.*)$", text, re.M):
            yield [uri], [suite], rest.split(), options


def _system_sources() -> str:
    lines = [
        f"deb {options}{uri} {suite} {' '.join(components)}"
        for uris, suites, components, options in _source_entries()
        for uri in uris
        for suite in suites
    ]
    if not lines:
        raise ToolMissing("apt has no package source. Configure one, or install ROCm.")
    return "\n".join(lines) + "\n"


def _mirror() -> str:
    """The Debian mirror the machine already uses (its first entry that is not a security archive)."""
    uris = [uri for uris, _, _, _ in _source_entries() for uri in uris]
    for uri in uris:
        if "security" not in uri and "debian" in uri:
            return uri
    if uris:
        return uris[0]
    raise ToolMissing("apt has no package source. Configure one, or install ROCm.")


def _triton_bitcode() -> Path:
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "backends" / "amd" / "lib"
        if (folder / "ocml.bc").exists():
            return folder
    raise ToolMissing("The frozen header set needs the bitcode of an installed triton. Install wavesmith[triton].")


def _synthesise_bitcode(source: Path, out: Path, staged: Path) -> None:
    """Device library folder from ocml.bc and ockl.bc alone: the oclc_* modules hold one constant each."""
    clang, _ = find_clang(staged / "compiler")
    if clang is None:
        raise ToolMissing("clang is missing")
    tools = clang.resolve().parent
    out.mkdir(parents=True)
    for name in ("ocml.bc", "ockl.bc"):
        shutil.copy(source / name, out / name)
    header = subprocess.run(
        [str(clang), "--target=amdgcn-amd-amdhsa", "-S", "-emit-llvm", "-x", "c", "/dev/null", "-o", "-"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    target = "\n".join(line for line in header.splitlines() if line.startswith("target "))
    for name, constants in _control_modules().items():
        body = [f"@{n} = linkonce_odr hidden local_unnamed_addr addrspace(4) constant {t} {v}" for n, t, v in constants]
        subprocess.run(
            [str(tools / "llvm-as"), "-o", str(out / f"{name}.bc"), "-"],
            input="\n".join([target, *body]) + "\n", text=True, check=True, capture_output=True,
        )  # fmt: skip


def _control_modules() -> dict[str, list[tuple[str, str, int]]]:
    modules: dict[str, list[tuple[str, str, int]]] = {"hip": [], "opencl": []}
    for state, value in (("on", 1), ("off", 0)):
        for module, constant in _CONTROL_SWITCHES.items():
            modules[f"oclc_{module}_{state}"] = [(f"__oclc_{constant}", "i8", value)]
        modules[f"oclc_wavefrontsize64_{state}"] = [
            ("__oclc_wavefrontsize64", "i8", value), ("__oclc_wavefrontsize_log2", "i32", 5 + value),
        ]  # fmt: skip
    for abi in (400, 500, 600):
        modules[f"oclc_abi_version_{abi}"] = [("__oclc_ABI_version", "i32", abi)]
    for isa, number in _ISA_NUMBERS.items():
        modules[f"oclc_isa_version_{isa}"] = [("__oclc_ISA_version", "i32", number)]
    return modules


def _write_manifest(staged: Path, origin: Origin, hip_root: Path, bitcode: Path, packages: list[str]) -> None:
    kept = [p for p in staged.rglob("*") if p.is_file() and not p.is_symlink()]
    manifest = {
        "origin": origin,
        "hip_root": str(hip_root.relative_to(staged)),
        "bitcode": str(bitcode.relative_to(staged)),
        "packages": packages,
        "files": {str(p.relative_to(staged)): file_digest(p) for p in kept},
    }
    (staged / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _probe(staged: Path, hip_root: Path, bitcode: Path, origin: Origin, progress: Progress) -> None:
    """Compile one kernel for both architectures; raises `ToolMissing` with the compiler's words when that fails."""
    clang, libraries = find_clang(staged / "compiler")
    env = dict(os.environ)
    if libraries:
        env["LD_LIBRARY_PATH"] = ":".join(str(p) for p in libraries)
    source = staged.parent / "probe.hip"
    source.write_text(_PROBE, encoding="utf-8")
    for arch in ("gfx942", "gfx950"):
        progress(f"trying the compiler for {arch}")
        words = [
            str(clang), "-x", "hip", f"--hip-path={hip_root}", f"--rocm-device-lib-path={bitcode}",
            "-D__AMDGCN_WAVEFRONT_SIZE=64", "-D__HIP_PLATFORM_AMD__=1", f"--offload-arch={arch}", "--cuda-device-only",
            "--no-gpu-bundle-output", "-c", str(source), "-o", str(staged.parent / f"probe.{arch}.hsaco"),
        ]  # fmt: skip
        words += ["-mcode-object-version=5"] if origin == "frozen" else []
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise ToolMissing(f"the prepared compiler does not build for {arch}: {done.stderr.strip()[:500]}")
