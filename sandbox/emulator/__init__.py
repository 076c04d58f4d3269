"""A functional emulator of gfx942 and gfx950: it runs compiled AMD code objects on the CPU.

`load_code_object` reads an ELF code object (Triton `.hsaco` or clang HIP), `Memory` holds the buffers, `emulate` runs a
kernel of it. What an instruction does is written from the ISA manuals; nothing here was run on an AMD GPU, so a pass is
"validated in emulation", never "validated on MI300X". An instruction or a modifier that is not implemented ends the run
with status `unsupported`; it is never ignored.
"""

from sandbox.emulator.instruction import Unsupported
from sandbox.emulator.loader import CodeObject, KernelInfo, load_code_object
from sandbox.emulator.memory import Allocation, Memory
from sandbox.emulator.result import EmulationResult, Finding
from sandbox.emulator.run import emulate

__all__ = [
    "Allocation",
    "CodeObject",
    "EmulationResult",
    "Finding",
    "KernelInfo",
    "Memory",
    "Unsupported",
    "emulate",
    "load_code_object",
]
