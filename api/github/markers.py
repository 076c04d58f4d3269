"""The hidden marker that tells which finding a review comment is about."""

from __future__ import annotations

import re

_FINDING = re.compile(r"<!-- wavesmith:finding ([0-9a-f]{16}) -->")


def finding_marker(fingerprint: str) -> str:
    """The first line of a comment about a finding."""
    return f"<!-- wavesmith:finding {fingerprint} -->"


def findings_in(body: str) -> list[str]:
    """Fingerprints that a comment carries."""
    return _FINDING.findall(body)
