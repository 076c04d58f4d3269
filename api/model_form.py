"""The fields of `POST /v1/jobs` that concern a language model and the job's budget."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Form

from agent.job import Budget, Options
from agent.model_access import find_key
from api.model_options import AskedModel, parse_usd, with_model
from api.settings import Settings
from sandbox.errors import InputError

MAX_MINUTES = 24 * 60
MAX_EVALUATIONS = 10_000


@dataclass(frozen=True, slots=True)
class ModelForm:
    """What a request says of its model and budget; None for what it leaves out."""

    model: str | None = None
    budget_usd: str | None = None
    budget_tokens: int | None = None
    budget_minutes: float | None = None
    budget_evaluations: int | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def check(self, settings: Settings, kind: str) -> None:
        """Raises `InputError` for what the service does not offer, and for a model whose key is missing here.

        Where the workers run elsewhere (`workers` is 0) the key is theirs, and only they can miss it.
        """
        if not self.given:
            return
        if kind != "optimize":
            raise InputError("a model and a budget are for kind=optimize.", remedy="Leave them out.")
        if self.budget_minutes is not None and not 0 < self.budget_minutes <= MAX_MINUTES:
            raise InputError("budget_minutes is out of range.", remedy=f"Give more than 0 and at most {MAX_MINUTES}.")
        if self.budget_evaluations is not None and not 0 < self.budget_evaluations <= MAX_EVALUATIONS:
            raise InputError("budget_evaluations is out of range.", remedy=f"Give 1 to {MAX_EVALUATIONS}.")
        asked = AskedModel(self.model, None, self.budget_usd, self.budget_tokens)
        asked.check()
        if self.model is None:
            return
        allowed = settings.allowed_models
        if self.model not in allowed:
            offered = f"Choose one of {', '.join(allowed)}." if allowed else "This service offers none."
            raise InputError(f"the model {self.model!r} is not offered here.", remedy=offered)
        if self.budget_usd is not None and parse_usd(self.budget_usd) > settings.model_max_usd:
            raise InputError(f"a job may allow its model ${settings.model_max_usd} at most.", remedy="Ask for less.")
        asked = AskedModel(self.model, settings.model_base_url, self.budget_usd, self.budget_tokens)
        options = with_model(Options(budget=Budget()), asked, os.environ)
        if settings.workers and options.model is not None:
            find_key(options.model, os.environ)


def model_form(
    model: Annotated[str | None, Form(description="PROVIDER:NAME of a model that this service offers.")] = None,
    budget_usd: Annotated[str | None, Form(description="Dollars the model may cost, for example 0.50.")] = None,
    budget_tokens: Annotated[int | None, Form(description="Tokens the model may use.")] = None,
    budget_minutes: Annotated[float | None, Form(description="Minutes the search may take.")] = None,
    budget_evaluations: Annotated[int | None, Form(description="Candidates that may be judged.")] = None,
) -> ModelForm:
    """A dependency: these form fields as one value."""
    return ModelForm(model, budget_usd, budget_tokens, budget_minutes, budget_evaluations)
