"""What a caller asks of a language model, as text: checked here for both doors, the command line and the REST API."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from agent.job import Options
from agent.memory import Memory, memory_path
from agent.model_access import fill_budget, model_price, open_model, parse_model
from agent.model_work import Helper
from agent.port.model_repair import ModelRepairer, repair_knowledge
from agent.port.record import TRANSCRIPT_NAME
from agent.spend import Ledger, Limits
from agent.transcript import RecordingModel
from sandbox.errors import InputError

MAX_USD = Decimal(10_000)
MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class AskedModel:
    """`model` is `PROVIDER:NAME`; None for all fields when no model shall take part."""

    model: str | None = None
    base_url: str | None = None
    usd: str | None = None
    tokens: int | None = None

    def check(self) -> None:
        """Raises `InputError` for a model or a budget that cannot be meant."""
        if self.model is None:
            if self.base_url is not None or self.usd is not None or self.tokens is not None:
                raise InputError("a budget or an address for a model was given, but no model.", remedy="Give a model.")
            return
        parse_model(self.model, self.base_url)
        if self.usd is not None:
            parse_usd(self.usd)
        if self.tokens is not None and not 0 < self.tokens <= MAX_TOKENS:
            raise InputError(f"a budget of {self.tokens} tokens cannot be kept.", remedy=f"Give 1 to {MAX_TOKENS}.")


def parse_usd(text: str) -> Decimal:
    """An amount in US dollars, exactly as written; raises `InputError` when it is none."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 < amount <= MAX_USD:
        raise InputError(f"{text!r} is no budget in dollars.", remedy="Write an amount such as 0.50.")
    return amount


def with_model(options: Options, asked: AskedModel, environ: Mapping[str, str]) -> Options:
    """The options with the model and its budget; unchanged when none is asked for. Raises `InputError`."""
    asked.check()
    if asked.model is None:
        return options
    choice = parse_model(asked.model, asked.base_url)
    usd = None if asked.usd is None else parse_usd(asked.usd)
    budget = fill_budget(choice, replace(options.budget, usd=usd, tokens=asked.tokens), environ)
    return replace(options, model=choice, budget=budget)


def repairer_of(
    options: Options, targets: Sequence[str], folder: Path, say: Callable[[str], None]
) -> ModelRepairer | None:
    """The model of the options as one that repairs ports; its transcript goes to `folder`. None without a model."""
    if options.model is None:
        return None
    price, budget = model_price(options.model, os.environ), options.budget
    model = open_model(options.model, os.environ)
    transcript = folder / TRANSCRIPT_NAME
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text("", encoding="utf-8")
    ledger = Ledger(Limits(budget.usd, budget.tokens, budget.wall_s), options.model.name, price)
    return ModelRepairer(RecordingModel(model, transcript), ledger, targets, say, repair_knowledge(targets))


def open_helper(options: Options, arch: str, environ: Mapping[str, str]) -> Helper | None:
    """The model of the options, after everything it needs was found, with what is remembered of earlier jobs."""
    if options.model is None:
        return None
    model = open_model(options.model, environ)
    path = memory_path(environ)
    memory = Memory(path) if path is not None else None
    remembered = tuple(memory.items(arch)) if memory is not None else ()
    return Helper(model, model_price(options.model, environ), memory, remembered)
