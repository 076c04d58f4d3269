"""`skill.yaml`: what is wrong is said with file, line and remedy."""

import subprocess
import sys

import pytest

from sandbox.errors import InputError
from sandbox.kernel import parse_kernel
from sandbox.target import load_target
from skills.match import match
from skills.skill import Library, TransformFile, load_library, load_skill, parse_skill_data
from skills.source_facts import collect_facts

GOOD = """\
id: some-skill
title: Some skill
kind: tune
languages: [triton]
targets: [gfx950]
applies_when:
  - vgpr_spill_count > 0
bottlenecks: [vgpr-spills]
why: because
expects:
  - {metric: vgpr_spill_count, direction: down}
references: [a page]
"""


def test_a_good_file() -> None:
    assert parse_skill_data(GOOD, "skill.yaml").id == "some-skill"


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ("kind: tune", "kind: faster", 3, "kind"),
        ("targets: [gfx950]", "targets: [gfx1234]", 5, "unknown target gfx1234"),
        ("vgpr_spill_count > 0", "spills > 0", 6, "`spills` is not a known fact"),
        ("why: because\n", "", 1, "why: Field required"),
        ("why: because", "why: because\nwhy: twice", 10, "appears twice"),
        ("title: Some skill", "title: Some skill\ncolour: red", 3, "colour: Extra inputs are not permitted"),
        ("direction: down", "direction: sideways", 11, "direction"),
        ("id: some-skill", "id: Some_Skill", 1, "id"),
        ("why: because", "why: because\nnumerics: approximate", 1, "request.allow_approx"),
        ("title: Some skill", "title: [", None, ""),
    ],
)
def test_a_bad_file_is_explained(old: str, new: str, line: int | None, part: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_skill_data(GOOD.replace(old, new), "skill.yaml")
    assert caught.value.file == "skill.yaml"
    assert part in str(caught.value)
    assert line is None or caught.value.line == line
    assert caught.value.remedy


def test_a_folder_must_be_named_as_its_skill(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "skill.yaml").write_text(GOOD)
    with pytest.raises(InputError, match="does not match the folder"):
        load_skill(tmp_path / "other")
    with pytest.raises(InputError, match=r"no skill\.yaml"):
        load_skill(tmp_path)
    (tmp_path / "some_skill").mkdir()
    (tmp_path / "some_skill" / "skill.yaml").write_text(GOOD)
    with pytest.raises(InputError, match=r"no transform\.py"):
        load_skill(tmp_path / "some_skill")


def test_every_transform_has_its_functions_and_loading_imports_none_of_them() -> None:
    program = "import sys; from skills.skill import load_library; load_library(); print('libcst' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    for skill in load_library():
        assert isinstance(skill.module, TransformFile)
        skill.module.load()


KERNEL = b"""
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, libdevice.add_ru(tl.load(x_ptr + i), 1.0))


def run(x):
    k[(1,)](x, 5, BLOCK=128, num_warps=32)
"""


def test_matching_gives_matches_refusals_and_what_was_not_met() -> None:
    kernel, target = parse_kernel(KERNEL, "k.py"), load_target("gfx950")
    found = match(kernel, collect_facts(kernel, target), target, load_library())
    assert [m.skill.id for m in found][:2] == ["cap-num-warps", "port-cuda-libdevice"]
    assert [(r.skill_id, r.line) for r in found.refusals] == [("port-cuda-libdevice", 10)]
    unmet = {u.skill.id: u.reason for u in found.unmet}
    assert unmet["spill-relief"] == "vgpr_spill_count is not known: it was not collected"
    edited = found.matches[0].apply()
    assert edited is not None and "num_warps=16" in edited.source


def test_nothing_for_amd_is_offered_on_nvidia() -> None:
    kernel, target = parse_kernel(KERNEL, "k.py"), load_target("sm_90")
    library = load_library()
    found = match(kernel, collect_facts(kernel, target), target, Library(library.skills))
    assert not {m.skill.id for m in found} & {"cap-num-warps", "port-cuda-libdevice"}
