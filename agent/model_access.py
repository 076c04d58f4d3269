"""From `--model PROVIDER:NAME` to a model that answers: everything that can be missing is found before any work starts.

Keys and prices come from the environment alone. They are never an argument, and never part of a job or a report.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from urllib.parse import urlsplit

from agent.job import Budget, ModelChoice
from agent.model import Model, ModelError
from agent.model_anthropic import AnthropicModel
from agent.model_openai import OpenAIModel
from agent.spend import Price, price_of
from sandbox.errors import InputError
from sandbox.isolation import isolation_level

PRICE_VARIABLE = "WAVESMITH_MODEL_PRICE"
CHECK_S = 15.0
DEFAULT_USD = Decimal(1)
DEFAULT_TOKENS = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9][\w.:/@+\-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of server, the package that speaks to it and the variable that holds its key."""

    title: str
    package: str
    key_variable: str


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("Anthropic", "anthropic", "ANTHROPIC_API_KEY"),
    "openai": Provider("OpenAI", "openai", "OPENAI_API_KEY"),
}
KEY_VARIABLES = tuple(p.key_variable for p in PROVIDERS.values())


def parse_model(text: str, base_url: str | None = None) -> ModelChoice:
    """`anthropic:NAME` or `openai:NAME`; raises `InputError` for anything else, or for a URL that is no server's."""
    provider, colon, name = text.partition(":")
    if not colon or provider not in PROVIDERS or not _NAME.fullmatch(name):
        raise InputError(
            f"{text!r} names no model.", remedy=f"Write PROVIDER:NAME; providers are {', '.join(PROVIDERS)}."
        )
    return ModelChoice(provider, name, _checked_url(base_url) if base_url else None)


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_fine = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise InputError("the model's base URL is not a web address.", remedy="Write http://HOST:PORT/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            "the model's base URL holds more than an address.", remedy="Give the key in the environment, not in a URL."
        )
    return url


def fill_budget(choice: ModelChoice, budget: Budget, environ: Mapping[str, str]) -> Budget:
    """The budget with a limit for the model: one dollar where its price is known, else a million tokens.

    Raises `InputError` for a limit in dollars on a model whose price is unknown: it could not be kept.
    """
    price = model_price(choice, environ)
    if budget.usd is not None and price is None:
        raise InputError(
            f"the price of {choice} is not known, so a budget in dollars cannot be kept.",
            remedy=f"Set {PRICE_VARIABLE}, or give --budget-tokens.",
        )
    if budget.usd is not None or budget.tokens is not None:
        return budget
    return replace(budget, usd=DEFAULT_USD) if price is not None else replace(budget, tokens=DEFAULT_TOKENS)


def model_price(choice: ModelChoice, environ: Mapping[str, str]) -> Price | None:
    """The price from `$WAVESMITH_MODEL_PRICE`, else from the shipped table; None when it is not known.

    The variable holds `INPUT/OUTPUT` or `INPUT/OUTPUT/CACHE_READ/CACHE_WRITE`, in US dollars per million tokens.

    With a base URL the shipped table does not count: the same name may cost anything there.
    """
    text = environ.get(PRICE_VARIABLE, "").strip()
    if not text:
        return None if choice.base_url else price_of(choice.name)
    try:
        values = [Decimal(word) for word in text.split("/")]
    except InvalidOperation:
        values = []
    if len(values) not in (2, 4) or any(not v.is_finite() or v < 0 for v in values):
        raise InputError(
            f"{PRICE_VARIABLE} is not a price.", remedy="Write INPUT/OUTPUT in dollars per million tokens."
        )
    cached = values[2:] or [values[0], values[0]]
    return Price(input=values[0], output=values[1], cache_read=cached[0], cache_write=cached[1])


def open_model(choice: ModelChoice, environ: Mapping[str, str], *, check: bool = True) -> Model:
    """The model, once its package, its key and its server were found. Raises `InputError` naming what is missing."""
    provider = PROVIDERS[choice.provider]
    if find_spec(provider.package) is None:
        raise InputError(
            f"the Python package {provider.package} is not installed, which {choice} needs.",
            remedy=f"Run `pip install 'wavesmith[{choice.provider}]'`.",
        )
    key = find_key(choice, environ)
    if key is not None and choice.base_url is not None and _in_the_clear(choice.base_url):
        key = None  # a key is not sent over the network unencrypted
    if key is not None and isolation_level() != "bubblewrap":
        raise InputError(
            "without bubblewrap a candidate could read the model's key.",
            remedy="Install bubblewrap (`wavesmith doctor` checks it), or use a local model that needs no key.",
        )
    kind = AnthropicModel if choice.provider == "anthropic" else OpenAIModel
    model = kind(choice.name, key, choice.base_url)
    if check:
        _reach(model, choice)
    return model


def find_key(choice: ModelChoice, environ: Mapping[str, str]) -> str | None:
    """The key of the model's provider; raises `InputError` when there is none and the provider wants one."""
    variable = PROVIDERS[choice.provider].key_variable
    key = environ.get(variable, "").strip() or None
    if key is None and choice.base_url is None:
        raise InputError(f"there is no key for {choice}.", remedy=f"Set {variable} in the environment.")
    return key


def _in_the_clear(url: str) -> bool:
    """Whether what is sent to `url` crosses a network unencrypted."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return True


def _reach(model: AnthropicModel | OpenAIModel, choice: ModelChoice) -> None:
    """Ask for the list of models, which costs nothing. A server without such a list still answers."""
    try:
        model.check(CHECK_S)
    except ModelError as e:
        if e.status in (401, 403):
            variable = PROVIDERS[choice.provider].key_variable
            raise InputError(
                f"the server of {choice} refused the key ({e.status}).", remedy=f"Check {variable}."
            ) from None
        if e.status is not None and 300 <= e.status < 400:
            raise InputError(
                f"the server of {choice} sends on to another address, which is not followed.",
                remedy="Give that address as --model-base-url.",
            ) from None
        if e.status is None:
            raise InputError(
                f"{choice} cannot be used: {e}.", remedy="Check --model-base-url and the network."
            ) from None
