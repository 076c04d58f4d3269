"""`wavesmith review` on real repositories: what is reported, what is not, and what stays the same across pushes."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema_rs
import pytest
from branches import KERNEL, LIBDEVICE, Branches
from octokit import SARIF, from_npm

from agent.events import Progress
from agent.review import review as review_module
from agent.review.affected import affected_kernels
from agent.review.changes import ChangedFile, read_change
from agent.review.finding import ReviewResult
from agent.review.review import ReviewRequest, review
from api.github.render import comment_text
from api.jobs import wavesmith_command
from api.sarif import sarif_log, sarif_text
from sandbox.errors import InputError
from sandbox.kernel import Language

SOURCE_ONLY = 1e-4
"""Minutes that are used up before anything is compiled."""
CUDA = """__global__ void add(float* x) {
    x[threadIdx.x] += 1.0f;
}
"""


def source_review(branches: Branches, monkeypatch: pytest.MonkeyPatch, **options: object) -> ReviewResult:
    """A review whose time is up right after the source was read."""
    monkeypatch.setattr(review_module, "_compile", lambda *_: None)
    request = ReviewRequest(branches.folder, "main", "pr", targets=("gfx942",))
    return review(replace(request, **{"minutes": 0.1, **options}), Progress())  # type: ignore[arg-type]


def change(branches: Branches, before: dict[str, str | bytes | None], after: dict[str, str | bytes | None]) -> None:
    branches.commit({"README.md": "x", **before})
    branches.branch("pr")
    branches.commit(after)


@pytest.mark.slow
def test_the_whole_way_with_the_compiler(branches: Branches, tmp_path: Path) -> None:
    """Exit code, JSON and SARIF of the command; the fix compiles, is a suggestion, and `git apply` takes its patch."""
    change(branches, {"ops/k.py": KERNEL}, {"ops/k.py": LIBDEVICE})
    sarif = tmp_path / "out.sarif"
    words = ["review", "--base", "main", "--head", "pr", "--repo", str(branches.folder), "--target", "gfx942"]
    words += ["--json", "--sarif", str(sarif), "--fail-on", "error", "--budget", "0.33"]
    done = subprocess.run(wavesmith_command(*words), capture_output=True, text=True, timeout=280)
    assert done.returncode == 4, done.stderr
    result = ReviewResult.model_validate_json(done.stdout)
    (finding,) = result.findings
    assert (finding.rule, finding.origin, finding.evidence, finding.path) == (
        "cuda-only", "introduced", "compiled", "ops/k.py",
    )  # fmt: skip
    assert finding.fix is not None and finding.fix.correctness == "compiled" and finding.fix.suggestion is not None
    assert "libdevice" in finding.fix.suggestion.text
    patch = tmp_path / "fix.patch"
    patch.write_text(finding.fix.patch)
    branches.repo.git.apply(str(patch))
    assert "extra.cuda" not in (branches.folder / "ops/k.py").read_text()
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["ruleId"] == "cuda-only"


def test_formatting_comments_and_other_files_affect_no_kernel(
    branches: Branches, monkeypatch: pytest.MonkeyPatch
) -> None:
    reformatted = KERNEL.replace("    mask = i < n\n", "    # in range\n    mask = (i < n)\n").replace(
        "import torch\n", "import torch  # x\n"
    )
    change(
        branches, {"k.py": KERNEL, "a.cu": CUDA}, {"k.py": reformatted, "a.cu": CUDA + "// more\n", "notes.txt": "y"}
    )
    result = source_review(branches, monkeypatch)
    assert result.kernels == () and result.findings == () and result.files_changed == 3


def test_a_rename_introduces_nothing(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    change(branches, {"ops/a.py": LIBDEVICE}, {"ops/a.py": None, "ops/b.py": LIBDEVICE})
    assert source_review(branches, monkeypatch).findings == ()


def test_what_was_there_before_is_only_touched(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = LIBDEVICE.replace("mask = i < n", "mask = (i < n) & (i >= 0)")
    change(branches, {"k.py": LIBDEVICE}, {"k.py": edited})
    result = source_review(branches, monkeypatch)
    assert {f.origin for f in result.findings} <= {"touched"}
    assert not result.fails("note")


def test_fingerprints_survive_moved_lines_and_name_the_file(
    branches: Branches, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(branches, {"k.py": KERNEL, "j.py": KERNEL}, {"k.py": LIBDEVICE, "j.py": LIBDEVICE})
    first = source_review(branches, monkeypatch).findings
    branches.commit({"k.py": "# moved\n\n\n" + LIBDEVICE.replace("libdevice.tanh(", "libdevice.tanh( ")})
    second = source_review(branches, monkeypatch).findings
    prints = [{f.path: f.fingerprint for f in found} for found in (first, second)]
    assert prints[0] == prints[1] and len(set(prints[0].values())) == 2


def test_a_further_use_of_a_known_construct_is_new(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    more = LIBDEVICE.replace("    mask = i < n\n", "    mask = i < n\n    y = libdevice.rsqrt(1.0 * i)\n")
    change(branches, {"k.py": LIBDEVICE}, {"k.py": more})
    introduced = source_review(branches, monkeypatch).counted()
    assert all(f.line == 10 for f in introduced)


def test_cuda_constructs_without_counterpart_and_lane_assumptions(
    branches: Branches, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = CUDA.replace(
        "    x[threadIdx.x] += 1.0f;\n",
        "    __shared__ float warps[32];\n    warps[threadIdx.x / 32] = x[0];\n"
        "    if (__ballot(x[1] > 0)) x[threadIdx.x] += warps[0];\n",
    )
    change(branches, {"a.cu": CUDA}, {"a.cu": wide})
    result = source_review(branches, monkeypatch)
    assert {f.rule for f in result.findings} == {"lane-32"} and all(f.kernel == "add" for f in result.findings)
    assert result.fails("warning") and not result.fails("error") and not result.fails()


def test_links_binaries_and_submodules_are_named_not_read(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text(LIBDEVICE)
    branches.commit({"README.md": "x"})
    branches.branch("pr")
    (branches.folder / "link.py").symlink_to(secret)
    branches.commit({"blob.cu": b"\0\1\2", "latin.py": b"# \xff\nimport triton\n"})
    result = source_review(branches, monkeypatch)
    reasons = {s.what: s.reason for s in result.skipped}
    assert reasons == {
        "link.py": "it is a symbolic link or a submodule",
        "blob.cu": "it is binary or not UTF-8 text",
        "latin.py": "it is binary or not UTF-8 text",
    }
    assert result.findings == ()


def test_three_thousand_files_and_a_huge_diff(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    many: dict[str, str | bytes | None] = {f"data/{n}.txt": f"{n}\n" * 3 for n in range(3000)}
    no_gain = {".wavesmith.yml": "severity: {gain: off}\n"}
    change(branches, no_gain, {**many, "big.py": "import triton\nx = 1\n" + "y = 2\n" * 100_000, "k.py": LIBDEVICE})
    result = source_review(branches, monkeypatch, minutes=5.0)
    assert result.files_changed == 3002 and [f.path for f in result.findings] == ["k.py"]


def test_the_configuration_of_the_base_counts(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    change(
        branches,
        {".wavesmith.yml": "severity: {cuda-only: note}\nexclude: ['vendor/**']\n", "k.py": KERNEL},
        {".wavesmith.yml": "ignore: [cuda-only]\n", "k.py": LIBDEVICE, "vendor/k.py": LIBDEVICE},
    )
    result = source_review(branches, monkeypatch)
    assert [(f.path, f.level) for f in result.findings] == [("k.py", "note")]
    assert "takes effect once merged" in result.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("targets: [gfx942\n", ".wavesmith.yml:2: expected"),
        ("minutes: 5\nfoo: 1\n", ".wavesmith.yml:2: foo is not a key. Keys are"),
        ("targets: [sm_90]\n", ".wavesmith.yml:1: targets: sm_90 is not an AMD target."),
        ("severity:\n  spills: off\n  nothing: note\n", ".wavesmith.yml:1: severity: nothing is not a rule"),
        ("severity:\n  spills: off\n  atomics: loud\n", ".wavesmith.yml:3: severity.atomics: Input should be"),
        ("minutes: 0\n", "minutes: Input should be greater than 0. Correct the value"),
        ("ignore: [spills]\nignore: []\n", ".wavesmith.yml:2: the key 'ignore' appears twice."),
        ("- a\n", "it is not a mapping."),
        ("version: 2\n", "version: Input should be 1"),
    ],
)
def test_a_bad_configuration_is_one_sentence(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    change(branches, {"k.py": KERNEL}, {".wavesmith.yml": text})
    with pytest.raises(InputError) as caught:
        source_review(branches, monkeypatch)
    assert words in str(caught.value) and "\n" not in str(caught.value).strip()


@pytest.mark.parametrize("name", ["nowhere", "--output=x", "-h", ""])
def test_a_name_that_is_no_commit(branches: Branches, name: str) -> None:
    branches.commit({"a.txt": "x"})
    with pytest.raises(InputError, match="is no commit here"):
        read_change(branches.repo, name, "main")


def test_histories_without_a_common_commit_are_compared_directly(branches: Branches) -> None:
    branches.commit({"k.py": KERNEL})
    branches.repo.git.checkout("-q", "--orphan", "pr")
    branches.commit({"k.py": LIBDEVICE})
    found = read_change(branches.repo, "main", "pr")
    assert found.notes and [f.path for f in found.files] == ["k.py"] and found.files[0].before is not None


def test_a_config_or_launch_or_callee_affects_the_kernel() -> None:
    def affected(before: str, after: str) -> tuple[str, ...]:
        return affected_kernels(ChangedFile("k.py", "k.py", before.encode(), after.encode()), Language.TRITON)

    helper = KERNEL.replace(
        "@triton.jit\n", "N = 4\n\n\n@triton.jit\ndef twice(a):\n    return a * N\n\n\n@triton.jit\n", 1
    )
    helper = helper.replace("tl.load(x + i, mask=mask) * 2.0", "twice(tl.load(x + i, mask=mask))")
    assert affected(KERNEL, KERNEL.replace("BLOCK=128)", "BLOCK=128, num_warps=8)")) == ("scale",)
    assert affected(helper, helper.replace("a * N", "a + N")) == ("twice", "scale")
    assert affected(helper, helper.replace("N = 4", "N = 5")) == ("twice", "scale")
    bare = KERNEL + "\n\nscale[(8,)](a, b, 1000, BLOCK=128)\n"
    assert affected(bare, bare.replace("[(8,)]", "[(9,)]")) == ("scale",)
    assert affected(helper, helper.replace("torch.randn(1000", "torch.randn(2000")) == ()


def test_sarif_has_what_the_standard_asks_for(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    change(branches, {"k.py": KERNEL}, {"a b/k.py": LIBDEVICE})
    log = sarif_log(source_review(branches, monkeypatch))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "Wavesmith"
    (found,) = run["results"]
    rule = run["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert rule["id"] == found["ruleId"] == "cuda-only" and found["level"] == "error"
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/k.py"
    assert found["partialFingerprints"]["wavesmith/v1"] and found["fixes"][0]["artifactChanges"]


def test_sarif_is_valid_by_its_schema(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    """With findings, fixes, things that were skipped, and names that must be escaped."""
    standard = from_npm(*SARIF)
    for part in ("run", "toolComponent"):
        del standard["definitions"][part]["properties"]["language"]["pattern"]  # which is no regular expression
    schema = jsonschema_rs.Draft7Validator(standard)
    change(branches, {"k.py": KERNEL}, {"k.py": None, **dict.fromkeys(ODD_NAMES, LIBDEVICE), "b.cu": b"\0"})
    result = source_review(branches, monkeypatch)
    assert len(result.findings) == len(ODD_NAMES)
    for log in (sarif_log(result), sarif_log(result.without(frozenset(["cuda-only"])))):
        assert not [e.message for e in schema.iter_errors(log)]


ODD_NAMES = (
    "ops/a b.py", "ops/it's \"quoted\".py", "ops/größe-核.py", "-rf.py", "ops/*.py", "ops/[x].py", ":k.py",
    "ops/a%20b#c?.py", "ops/back\\slash.py", "a..b.py", "ops/👍.py", "ops/$(touch x);`y`.py",
)  # fmt: skip


def test_files_of_any_name_are_reviewed_and_fixed(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spaces, quotes, other alphabets, what git or a shell reads as more than a name."""
    change(branches, dict.fromkeys(ODD_NAMES, KERNEL), dict.fromkeys(ODD_NAMES, LIBDEVICE))
    result = source_review(branches, monkeypatch)
    assert {f.path for f in result.findings} == set(ODD_NAMES) and len(result.findings) == len(ODD_NAMES)
    for f in result.findings:
        assert f.fix is not None and f.fix.suggestion is not None, f.path
        patch = tmp_path / "fix.patch"
        patch.write_text(f.fix.patch)
        branches.repo.git.apply(str(patch))
        assert "extra.cuda" not in (branches.folder / f.path).read_text(), f.path


def test_names_that_are_no_text_are_named_not_read(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    branches.commit({"README.md": "x"})
    branches.branch("pr")
    for name in (b"k\xff.py", b"tab\t.py", b"line\n.py"):
        Path(os.fsdecode(os.fsencode(branches.folder) + b"/" + name)).write_text(LIBDEVICE)
    branches.commit({"k.py": LIBDEVICE})
    result = source_review(branches, monkeypatch)
    assert [f.path for f in result.findings] == ["k.py"] and sum(
        s.reason == "its name is no plain path" for s in result.skipped
    ) == 3
    assert ReviewResult.model_validate_json(result.model_dump_json()) == result
    assert json.loads(sarif_text(result)) and comment_text(result)


def test_line_ends_of_windows_are_kept(branches: Branches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was there before is not introduced by a change of line ends; a fix leaves them as they are."""
    old, new = KERNEL.replace("\n", "\r\n").encode(), LIBDEVICE.replace("\n", "\r\n").encode()
    branches.repo.git.config("core.autocrlf", "false")
    change(branches, {"k.py": old, "j.py": LIBDEVICE}, {"k.py": new, "j.py": new})
    result = source_review(branches, monkeypatch)
    (finding,) = result.counted()
    assert finding.path == "k.py" and finding.fix is not None
    patch = tmp_path / "fix.patch"
    patch.write_bytes(finding.fix.patch.encode())
    branches.repo.git.apply(str(patch))
    fixed = (branches.folder / "k.py").read_bytes()
    assert b"extra.cuda" not in fixed and fixed.count(b"\n") == fixed.count(b"\r\n")


def test_lines_are_counted_as_git_counts_them(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Form feeds and Unicode's line separators end no line: a suggestion would replace another one."""
    odd = LIBDEVICE.replace("import torch\n", "import torch  # \u2028 \x0b \x0c \x85 x\n")
    change(branches, {"k.py": KERNEL}, {"k.py": odd})
    (finding,) = source_review(branches, monkeypatch).findings
    assert finding.line == odd[: odd.index("from triton")].count("\n") + 1
    assert finding.fix is not None and finding.fix.suggestion is not None
    s = finding.fix.suggestion
    text = odd.split("\n")
    text[s.start - 1 : s.end] = s.text.split("\n")
    patch = tmp_path / "fix.patch"
    patch.write_text(finding.fix.patch)
    branches.repo.git.apply(str(patch))
    assert "\n".join(text) == (branches.folder / "k.py").read_text() and "extra.cuda" not in "\n".join(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LIBDEVICE + "def broken(:\n", "line 22"),
        (KERNEL.replace("* 2.0", "* " + "-" * 20000 + "2.0"), "nested too deeply"),
        (KERNEL.replace("* 2.0", "* (" + "+".join(["2.0"] * 6000) + ")"), "nested too deeply"),
        (KERNEL.replace("* 2.0", "* " + "(" * 300 + "2.0" + ")" * 300), "too many nested parentheses"),
        (LIBDEVICE + "# " + "x" * 70_000 + "\0\n", "binary"),
    ],
    ids=["syntax", "minus", "sum", "parentheses", "nul"],
)
def test_what_cannot_be_parsed_is_named_and_costs_no_other_file(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    change(branches, {}, {"bad.py": text, "k.py": LIBDEVICE})
    result = source_review(branches, monkeypatch)
    assert [f.path for f in result.findings] == ["k.py"]
    assert any(s.what == "bad.py" and words in s.reason for s in result.skipped), result.skipped


def test_names_of_any_length(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "/".join(["d" * 200] * 6) + "/k.py"
    change(branches, {}, {deep: LIBDEVICE, "k.py": LIBDEVICE.replace("scale", "s" * 400)})
    result = source_review(branches, monkeypatch)
    assert [f.path for f in result.findings] == ["k.py"]
    assert any(s.reason == "its name is too long" for s in result.skipped)


def test_submodules_and_links_into_and_out_of_the_repository(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = Branches(tmp_path / "other")
    other.commit({"k.py": LIBDEVICE})
    branches.commit({"ops/k.py": KERNEL})
    branches.branch("pr")
    branches.repo.git.execute(
        ["git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "ops/sub.cu"]
    )
    (branches.folder / "ops/inner.py").symlink_to("k.py")
    (branches.folder / "ops/host").symlink_to("/etc")
    branches.commit({"ops/k.py": LIBDEVICE})
    result = source_review(branches, monkeypatch)
    assert [f.path for f in result.findings] == ["ops/k.py"]
    assert {s.what for s in result.skipped} >= {"ops/inner.py", "ops/sub.cu"}
