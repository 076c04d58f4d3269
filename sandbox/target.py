"""Hardware targets as data: `targets/<arch>.yaml` holds the facts of one compiler architecture and its boards."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from sandbox.errors import InputError, WavesmithError
from sandbox.yaml_text import FAST_LOADER

Dtype = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"]
Vendor = Literal["amd", "nvidia"]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Board(_Data):
    """One product. Counts and rates are per device as the runtime presents it (one GCD of an MI250X is one device)."""

    name: str
    device_name: str
    """As `torch.cuda.get_device_name()` answers."""
    compute_units: PositiveInt
    """CUs (AMD) or SMs (NVIDIA)."""
    xcds: PositiveInt
    """Dies with their own L2, to which workgroups are dealt round robin."""
    max_clock_ghz: PositiveFloat
    l2_bytes_per_xcd: PositiveInt
    last_level_cache_bytes: PositiveInt
    """The largest cache before HBM: Infinity Cache (MALL) where there is one, else L2. A flush must exceed it."""
    hbm_gb: PositiveFloat
    hbm_gb_per_s: PositiveFloat
    peak_tflop_per_s: dict[Dtype, PositiveFloat]
    """Dense matrix peaks by operand type; a type that is absent has no matrix instruction."""
    peak_vector_fp32_tflop_per_s: PositiveFloat
    sources: dict[str, str]
    """Key name, or `*` for every other key, to where the value comes from."""


class Target(_Data):
    """One compiler architecture (`gfx950`, `sm_90`) seen as one of its boards."""

    arch: str
    vendor: Vendor
    title: str
    wavefront_size: PositiveInt
    max_threads_per_workgroup: PositiveInt
    max_grid_threads: PositiveInt
    """Upper limit of grid x block threads of one launch (HIP rejects 2^32 and more)."""
    lds_bytes_per_workgroup: PositiveInt
    lds_bytes_per_cu: PositiveInt
    lds_banks: PositiveInt
    simds_per_cu: PositiveInt
    max_waves_per_simd: PositiveInt
    vgprs_per_simd_lane: PositiveInt
    """Registers one lane's share of a SIMD's file holds, ArchVGPRs and AccVGPRs together where unified."""
    max_vgprs_per_wave: PositiveInt
    vgpr_granule: PositiveInt
    sgprs_per_wave: PositiveInt
    max_workgroups_per_cu: PositiveInt
    l2_line_bytes: PositiveInt
    matrix_dtypes: frozenset[Dtype]
    """Operand types with a matrix instruction."""
    fp8_format: Literal["none", "fnuz", "ocp"]
    dot_input_precisions: frozenset[Literal["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"]]
    """What `tl.dot(input_precision=...)` may name for this architecture in Triton 3.6."""
    mfma_shapes: frozenset[int]
    """`matrix_instr_nonkdim` values, empty on NVIDIA."""
    isa_sources: dict[str, str]
    boards: Annotated[dict[str, Board], Field(min_length=1)]
    default_board: str
    counter_blocks: dict[str, PositiveInt] = {}
    """Hardware counters that one pass can read, per block (rocprofv3)."""
    board_name: str = ""

    @property
    def most_warps(self) -> int:
        """The most warps that a workgroup may have."""
        return self.max_threads_per_workgroup // self.wavefront_size

    @property
    def board(self) -> Board:
        return self.boards[self.board_name or self.default_board]

    def on(self, board: str) -> Target:
        """The same architecture seen as another of its boards; raises `InputError` for an unknown one."""
        for name in self.boards:
            if name.lower() == board.lower():
                return self.model_copy(update={"board_name": name})
        raise InputError(f"{self.arch} has no board named {board}.", remedy=f"Choose one of {', '.join(self.boards)}.")

    @property
    def is_amd(self) -> bool:
        return self.vendor == "amd"

    def occupancy(self, vgpr_count: int, lds_bytes: int, waves_per_workgroup: int) -> tuple[int, str]:
        """Waves that fit on one SIMD, and what limits them: `waves`, `vgpr`, `lds` or `workgroups`.

        `vgpr_count` is per lane, AccVGPRs included where the file is unified; `lds_bytes` per workgroup. A kernel that
        does not fit at all has occupancy 0. Formula: floor(file / granule-rounded registers), AMD CDNA3 ISA guide.
        """
        limits = {"waves": self.max_waves_per_simd}
        if vgpr_count > 0:
            granted = -(-vgpr_count // self.vgpr_granule) * self.vgpr_granule
            limits["vgpr"] = self.vgprs_per_simd_lane // granted if granted <= self.max_vgprs_per_wave else 0
        per_cu = self.max_workgroups_per_cu
        limits["workgroups"] = -(-per_cu * waves_per_workgroup // self.simds_per_cu)
        if lds_bytes > 0:
            groups = self.lds_bytes_per_cu // lds_bytes if lds_bytes <= self.lds_bytes_per_workgroup else 0
            limits["lds"] = -(-groups * waves_per_workgroup // self.simds_per_cu)
        limiter = min(limits, key=lambda k: limits[k])
        return min(limits.values()), limiter


@cache
def _load(arch: str) -> Target:
    resource = resources.files("sandbox") / "targets" / f"{arch}.yaml"
    data: dict[str, Any] = yaml.load(resource.read_text(encoding="utf-8"), FAST_LOADER)
    for name, board in data.get("boards", {}).items():
        board["name"] = name
    try:
        target = Target.model_validate(data)
    except ValidationError as e:
        raise WavesmithError(f"sandbox/targets/{arch}.yaml is not valid: {e}") from e
    if target.arch != arch or target.default_board not in target.boards:
        raise WavesmithError(f"sandbox/targets/{arch}.yaml: arch or default_board does not match.")
    return target


@cache
def known_archs() -> tuple[str, ...]:
    """Every architecture with a file in `sandbox/targets`, AMD first."""
    names = [
        p.name.removesuffix(".yaml")
        for p in (resources.files("sandbox") / "targets").iterdir()
        if p.name.endswith(".yaml")
    ]
    return tuple(sorted(names, key=lambda n: (not n.startswith("gfx"), n)))


def load_target(name: str) -> Target:
    """The target of an architecture (`gfx950`, `gfx942:sramecc+:xnack-`, `sm_90`) or of a board (`MI350X`).

    Feature suffixes are dropped here, once. Raises `InputError` for a name that is neither.
    """
    bare = name.split(":", 1)[0].strip()
    for arch in known_archs():
        if arch == bare.lower():
            return _load(arch)
    for arch in known_archs():
        target = _load(arch)
        if any(b.lower() == bare.lower() for b in target.boards):
            return target.on(bare)
    boards = [b for a in known_archs() for b in _load(a).boards]
    raise InputError(
        f"{name!r} is not a known target.",
        remedy=f"Choose an architecture ({', '.join(known_archs())}) or a board ({', '.join(boards)}).",
    )
