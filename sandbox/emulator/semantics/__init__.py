"""What each instruction does, for the reference core. `reference.py` turns an `Instruction` into a step with these.

`operands` reads and writes registers under the modifiers; the other modules hold operations by family: pure functions
of 64-element arrays where an operation has no more to it, builders of whole steps where it does.
"""
