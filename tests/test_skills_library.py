"""Every skill of the library against its own cases."""

import importlib.util
import os
from pathlib import Path

import pytest

from sandbox.kernel import Language
from sandbox.target import load_target
from skills.cases import Case, cases_of
from skills.docs import docs_index, docs_page
from skills.skill import Skill, load_library

SKILLS = list(load_library())
CASES = [case for skill in SKILLS for case in cases_of(skill)]
GOLDEN = [c for c in CASES if c.after is not None]
COMPILED = [
    (c, spec, arch)
    for c in GOLDEN
    for spec in c.spec.compile
    for arch in spec.targets or sorted({*c.skill.data.targets, "sm_90"})
]


def name(case: Case) -> str:
    return f"{case.skill.id}-{case.name}"


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.id)
def test_has_a_golden_case_and_one_that_must_not_change(skill: Skill) -> None:
    own = [c for c in CASES if c.skill.id == skill.id]
    assert any(c.after is not None or c.spec.refuses is not None for c in own)
    assert any(c.after is None for c in own)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_case(case: Case) -> None:
    found = case.matches(case.before)
    if case.spec.refuses is not None:
        assert any(case.spec.refuses in r.reason for r in found.refusals), found.refusals
    elif not case.after:
        assert not found.refusals
    if case.spec.sites is not None:
        assert [m.site.label for m in found] == case.spec.sites
    if case.after is None:
        assert [m.id for m in found if m.apply() is not None] == []
        return
    chosen = [m for m in found if case.spec.site in (None, m.site.label)]
    assert chosen, [m.id for m in found] or [u.reason for u in found.unmet]
    edited = chosen[0].apply()
    assert edited is not None
    if os.environ.get("WRITE_GOLDEN"):
        (case.skill.folder / "cases" / case.name / f"after{Path(case.before.filename).suffix}").write_text(
            edited.source
        )
    assert edited.source == case.after.source, chosen[0].id


@pytest.mark.parametrize("case", GOLDEN, ids=name)
def test_applying_twice_changes_nothing_more(case: Case) -> None:
    assert case.after is not None
    label = case.spec.site or next(iter(case.matches(case.before))).site.label
    again = [m for m in case.matches(case.after) if m.site.label == label]
    assert [m.id for m in again if m.apply() is not None] == []


@pytest.mark.parametrize(("case", "spec", "arch"), COMPILED, ids=[f"{name(c)}-{s.kernel}-{a}" for c, s, a in COMPILED])
def test_after_compiles(case, spec, arch, tmp_path, compile_cache) -> None:
    from sandbox.compiling import Compiled, compile_signature

    if case.before.language is not Language.TRITON:
        pytest.skip("built by the tests of the port toolchain")
    assert case.after is not None
    path = case.after.write_to(tmp_path)
    loader = importlib.util.spec_from_file_location(f"case_{case.skill.id.replace('-', '_')}_{case.name}", path)
    assert loader is not None and loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    fn = getattr(module, spec.kernel)
    while hasattr(fn, "configs") or hasattr(fn, "values"):
        fn = fn.fn
    constants = dict(spec.constants)
    amd_only = {"waves_per_eu", "matrix_instr_nonkdim", "kpack"}
    options = {k: v for k, v in spec.options.items() if arch.startswith("gfx") or k not in amd_only}
    result = compile_signature(fn, spec.signature, constants, options, load_target(arch), cache=compile_cache)
    assert isinstance(result, Compiled), result


HIP_TUNES = [c for c in GOLDEN if c.before.language is Language.HIP and c.skill.data.kind == "tune"]


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("case", HIP_TUNES, ids=name)
def test_hip_after_compiles(case: Case, arch: str) -> None:
    from sandbox.hip import SourceTree, compile_hip
    from sandbox.toolchain import prepare_toolchain

    assert case.after is not None
    warnings = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-sign-compare")
    tree = SourceTree({case.after.filename: case.after.source}, flags=warnings)
    build = compile_hip(tree, case.after.filename, arch, prepare_toolchain())
    assert [str(d) for d in build.diagnostics] == []
    assert build.code_object is not None and build.kernels


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory):
    from sandbox.compile_cache import CompileCache

    return CompileCache.default() or CompileCache(tmp_path_factory.mktemp("compile-cache"))


def test_docs_pages_are_generated_from_the_data() -> None:
    index = docs_index(load_library())
    for skill in SKILLS:
        page = docs_page(skill)
        assert skill.data.title in page and all(c.text in page for c in skill.conditions)
        assert f"`{skill.id}`" in index
