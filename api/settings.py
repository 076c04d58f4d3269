"""Settings of the service, from `WAVESMITH_*` environment variables and from command line options, which win."""

from __future__ import annotations

import ipaddress
from decimal import Decimal
from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agent.model_access import parse_model
from sandbox.errors import InputError


class Settings(BaseSettings):
    """One process's settings. Sizes in bytes, times in seconds."""

    model_config = SettingsConfigDict(env_prefix="WAVESMITH_", extra="ignore", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    token: SecretStr | None = None
    """Bearer token every request must carry. Required unless the service listens on loopback only."""
    data_dir: Path = Path("wavesmith-data")
    """The database and a folder per job; one volume holds everything that must survive."""
    workers: int = Field(default=1, ge=0, le=64)
    """Worker processes that `serve` starts; 0 when workers run elsewhere on the same volume."""
    max_upload_bytes: int = Field(default=16 * 2**20, ge=1024)
    max_queued_jobs: int = Field(default=200, ge=1)
    max_wait_s: float = Field(default=120.0, ge=0)
    """Longest time `Prefer: wait=` may hold a request."""
    job_timeout_s: float = Field(default=1800.0, gt=0)
    lease_s: float = Field(default=15.0, gt=0)
    """A worker that does not renew its lease for this long has lost the job."""
    max_losses: int = Field(default=3, ge=1)
    """Attempts of one job that may end with a dead or frozen worker before the job is given up."""
    poll_s: float = Field(default=0.25, gt=0)
    public_url: str | None = Field(default=None, pattern=r"^https?://[^\s/]+(/\S*)?$")
    """Where people reach the dashboard; check runs link to it."""
    github_webhook_secret: SecretStr | None = None
    """Of the GitHub App; with the next two it switches the bot on."""
    github_app_id: str | None = None
    github_private_key_file: Path | None = None
    github_api_url: str = "https://api.github.com"
    github_git_url: str = "https://github.com"
    """Where repositories are fetched from, followed by `/owner/name.git`."""
    github_review_timeout_s: float = Field(default=3600.0, gt=0)
    """Longest time the review of one pull request may take, whatever its budget."""
    models: str = ""
    """Language models that jobs may name, as `PROVIDER:NAME`, separated by commas. None without."""
    model_base_url: str | None = None
    """Server of those models, where it is not the provider's own. A job cannot name another."""
    model_max_usd: Decimal = Field(default=Decimal(5), gt=0)
    """Most that one job may allow its model to cost."""

    @property
    def allowed_models(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.models.split(",") if name.strip())

    @property
    def database(self) -> Path:
        return self.data_dir / "wavesmith.db"

    @property
    def jobs_dir(self) -> Path:
        return self.data_dir / "jobs"

    @property
    def has_github(self) -> bool:
        return self.github_webhook_secret is not None

    @property
    def on_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Raises `InputError` for settings that would open the service to everyone, and for a model that is none."""
        for name in self.allowed_models:
            parse_model(name, self.model_base_url)
        if self.token is not None and len(self.token.get_secret_value()) < 16:
            raise InputError("the token is shorter than 16 characters.", remedy="Set a longer WAVESMITH_TOKEN.")
        if not self.on_loopback and self.token is None:
            raise InputError(
                f"listening on {self.host} without a token would let anyone run code here.",
                remedy="Set WAVESMITH_TOKEN, or listen on 127.0.0.1.",
            )
        self._check_github()

    def _check_github(self) -> None:
        given = (self.github_webhook_secret, self.github_app_id, self.github_private_key_file)
        if any(given) and not all(given):
            raise InputError(
                "the GitHub bot is set up in part.",
                remedy="Set WAVESMITH_GITHUB_WEBHOOK_SECRET, _APP_ID and _PRIVATE_KEY_FILE, or none of them.",
            )
        if self.github_private_key_file is not None and not self.github_private_key_file.is_file():
            raise InputError("there is no such key file.", file=self.github_private_key_file, remedy="Check the path.")
        if self.github_webhook_secret is not None and len(self.github_webhook_secret.get_secret_value()) < 16:
            raise InputError("the webhook secret is shorter than 16 characters.", remedy="Choose a longer one.")
