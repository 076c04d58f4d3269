"""Money, tokens, time and evaluations of one job: reserved before they are used, settled after, never exceeded."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from agent.job import Meter
from agent.model import Usage
from sandbox.errors import InputError, WavesmithError
from sandbox.yaml_text import FAST_LOADER

_PER = Decimal(1_000_000)
_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class BudgetSpent(WavesmithError):  # noqa: N818 - reads as the statement it makes
    """The next step would exceed the job's budget; what was found so far stands."""


class Price(BaseModel):
    """US dollars per million tokens of one model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


class _PriceTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    as_of: str
    models: dict[str, Price]


@cache
def price_table() -> _PriceTable:
    """The shipped table, `agent/prices.yaml`."""
    text = (resources.files("agent") / "prices.yaml").read_text(encoding="utf-8")
    try:
        return _PriceTable.model_validate(yaml.load(text, FAST_LOADER))
    except ValidationError as e:
        raise WavesmithError(f"agent/prices.yaml is not valid: {e}") from e


def price_of(model: str, own: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model, its date or `latest` left aside; None when it is unknown, never zero."""
    known = {**price_table().models, **(own or {})}
    return known.get(model) or known.get(_DATED.sub("", model))


def cost_usd(usage: Usage, price: Price) -> Decimal:
    """Exact cost of one call."""
    return (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    ) / _PER


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may use; None is no limit."""

    usd: Decimal | None = None
    tokens: int | None = None
    wall_s: float | None = None
    evaluations: int | None = None
    calls: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a job has used. `usd` is None once a call of unknown price was made."""

    usd: Decimal | None
    tokens: int
    wall_s: float
    evaluations: int
    """Those the model asked for."""
    calls: int
    usage: Usage


class Ledger:
    """Keeps the account of one job. Safe to use from several threads.

    Evaluations are counted by `meter`, which the search counts on as well. With a limit in dollars a model of unknown
    price is refused at the start: an unknown cost cannot be kept.
    """

    def __init__(
        self,
        limits: Limits,
        model: str,
        price: Price | None,
        clock: Callable[[], float] = time.monotonic,
        meter: Meter | None = None,
    ) -> None:
        if limits.usd is not None and price is None:
            raise InputError(
                f"the price of model {model!r} is not known, so a budget in dollars cannot be kept.",
                remedy="Give its price in the settings, or a budget in tokens.",
            )
        self._limits, self._price, self._clock = limits, price, clock
        self._meter = meter or Meter()
        self._lock = threading.Lock()
        self._began = clock()
        self._held = Usage()
        self._used = Usage()
        self._calls = self._evaluations = 0

    @property
    def spent(self) -> Spent:
        with self._lock:
            usd = None if self._price is None else cost_usd(self._used, self._price)
            wall_s = self._clock() - self._began
            return Spent(usd, self._used.total, wall_s, self._evaluations, self._calls, self._used)

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def price(self) -> Price | None:
        return self._price

    @property
    def account(self) -> str:
        """One line for people: what was spent, of what may be spent."""
        spent, limits = self.spent, self._limits
        calls = "1 call" if spent.calls == 1 else f"{spent.calls} calls"
        tokens = f"{spent.tokens:,}" + (f" of {limits.tokens:,}" if limits.tokens is not None else "") + " tokens"
        if spent.usd is None:
            return f"{calls}, {tokens}, price unknown"
        money = f"${spent.usd:.4f}" + (f" of ${limits.usd:.2f}" if limits.usd is not None else "")
        return f"{calls}, {tokens}, {money}"

    def remaining_s(self) -> float | None:
        limit = self._limits.wall_s
        return None if limit is None else max(0.0, limit - (self._clock() - self._began))

    def reserve_call(self, input_tokens: int, max_output_tokens: int) -> Usage:
        """Set aside the most a call can use; raises `BudgetSpent` when that is more than is left."""
        # a first call may write everything it sends to the cache, which costs more than plain input
        wanted = Usage(cache_write=input_tokens, output=max_output_tokens)
        with self._lock:
            after = self._used + self._held + wanted
            self._refuse_if(self._limits.calls is not None and self._calls + 1 > self._limits.calls, "model calls")
            self._refuse_if(self._limits.tokens is not None and after.total > self._limits.tokens, "tokens")
            self._refuse_if(self._out_of_time(), "time")
            if self._limits.usd is not None and self._price is not None:
                self._refuse_if(cost_usd(after, self._price) > self._limits.usd, "money")
            self._held = self._held + wanted
            self._calls += 1
        return wanted

    def settle_call(self, reserved: Usage, used: Usage) -> None:
        """Replace a reservation by what the call really used (nothing, when it failed before a reply)."""
        with self._lock:
            self._held = self._held + Usage(
                -reserved.input, -reserved.cache_read, -reserved.cache_write, -reserved.output
            )
            self._used = self._used + used

    def take_evaluation(self) -> None:
        """Count one evaluation of a candidate; raises `BudgetSpent` when none is left."""
        with self._lock:
            self._refuse_if(self._meter.used_up(self._limits.evaluations), "evaluations")
            self._refuse_if(self._out_of_time(), "time")
            self._meter.evaluations += 1
            self._evaluations += 1

    def _out_of_time(self) -> bool:
        limit = self._limits.wall_s
        return limit is not None and self._clock() - self._began >= limit

    def _refuse_if(self, spent: bool, what: str) -> None:
        if spent:
            raise BudgetSpent(f"the job's budget of {what} does not allow a further step")
