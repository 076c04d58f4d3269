"""Budgets are kept before they are spent, not noticed after."""

from __future__ import annotations

import re
import sys
import threading
from decimal import Decimal
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from provider import CLAUDE, GPT

from agent.model import Message, ScriptedModel, Tool, Usage, estimate_tokens
from agent.spend import BudgetSpent, Ledger, Limits, Price, price_of, price_table
from sandbox.errors import InputError

PRICE = Price(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))


def test_prices_by_prefix_and_never_a_silent_zero() -> None:
    assert price_of("claude-sonnet-4-6") == price_of("claude-sonnet-4-6-20260217") == PRICE
    assert price_of("gpt-5-mini-2025-08-07") == price_table().models["gpt-5-mini"]
    assert price_of("gpt-5") == price_table().models["gpt-5"]
    assert price_of("gpt-5.5") is None
    assert price_of("claude-opus-9") is None
    assert price_of("my-llama") is None
    assert price_of("my-llama", {"my-llama": PRICE}) == PRICE


def test_every_model_we_name_has_a_price_and_is_not_deprecated_by_its_sdk() -> None:
    """The page for people, the tests and the table of prices, against the list of the installed SDK."""
    from anthropic.resources.messages.messages import DEPRECATED_MODELS

    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = set(re.findall(r"anthropic:(claude-[\w-]+)", readme))
    assert shown and {*shown, CLAUDE, GPT} <= set(price_table().models)
    assert not DEPRECATED_MODELS.keys() & {*price_table().models, *shown, CLAUDE}


def test_money_is_never_exceeded_even_in_the_worst_case() -> None:
    ledger = Ledger(Limits(usd=Decimal("0.10")), "m", PRICE)
    calls = 0
    with pytest.raises(BudgetSpent, match="money"):
        while True:
            held = ledger.reserve_call(1000, 2000)
            ledger.settle_call(held, Usage(input=1000, output=2000))
            calls += 1
    # worst case of a call: 1,000 x 3.75 + 2,000 x 15 = 0.03375; used: 0.033
    assert calls == 3
    assert ledger.spent.usd == Decimal("0.099")


def test_a_failed_call_gives_its_reservation_back() -> None:
    ledger = Ledger(Limits(tokens=3000), "m", None)
    for _ in range(5):
        ledger.settle_call(ledger.reserve_call(1000, 1500), Usage())
    assert ledger.spent.tokens == 0
    ledger.settle_call(ledger.reserve_call(1000, 1500), Usage(input=900, output=100))
    with pytest.raises(BudgetSpent, match="tokens"):
        ledger.reserve_call(1000, 1500)


def test_unknown_prices() -> None:
    with pytest.raises(InputError, match="price of model 'my-llama' is not known.*budget in tokens"):
        Ledger(Limits(usd=Decimal(1)), "my-llama", None)
    assert Ledger(Limits(tokens=10), "my-llama", None).spent.usd is None


def test_time_calls_and_evaluations() -> None:
    now = [0.0]
    ledger = Ledger(Limits(wall_s=10, calls=2, evaluations=1), "m", None, clock=lambda: now[0])
    ledger.reserve_call(1, 1)
    ledger.reserve_call(1, 1)
    with pytest.raises(BudgetSpent, match="model calls"):
        ledger.reserve_call(1, 1)
    ledger.take_evaluation()
    with pytest.raises(BudgetSpent, match="evaluations"):
        ledger.take_evaluation()
    now[0] = 10.0
    assert ledger.remaining_s() == 0
    with pytest.raises(BudgetSpent, match="model calls|time"):
        ledger.reserve_call(1, 1)


def test_parallel_reservations_do_not_slip_through() -> None:
    ledger = Ledger(Limits(tokens=10_000), "m", None)
    granted: list[Usage] = []

    def work() -> None:
        try:
            granted.append(ledger.reserve_call(500, 500))
        except BudgetSpent:
            return

    threads = [threading.Thread(target=work) for _ in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(granted) == 10


def test_estimates_are_upper_estimates() -> None:
    messages = [Message("system", "x" * 3000), Message("user", "y" * 300)]
    assert estimate_tokens(messages, [Tool("t", "d" * 90, {"type": "object"})]) > 3300 / 4


def test_a_scripted_model_is_a_model() -> None:
    model = ScriptedModel([])
    with pytest.raises(Exception, match="no further reply"):
        model.propose([Message("user", "x")])
    assert len(model.asked) == 1
