"""A review as SARIF 2.1.0 (OASIS standard), as code scanning services take it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from agent.review.finding import RULES, Finding, Level, ReviewResult

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Level.NOTE: "note", Level.WARNING: "warning", Level.ERROR: "error"}


def sarif_text(result: ReviewResult) -> str:
    """The whole log as JSON text. Findings that were there before have `baselineState` `unchanged`."""
    return json.dumps(sarif_log(result), indent=2)


def sarif_log(result: ReviewResult) -> dict[str, Any]:
    """The log: one run, every rule described, one result for each finding."""
    names = list(RULES)
    rules = [
        {
            "id": r.id,
            "name": "".join(word.capitalize() for word in r.id.split("-")),
            "shortDescription": {"text": r.title},
            "fullDescription": {"text": r.help},
            "defaultConfiguration": {"level": _LEVELS[r.level]},
        }
        for r in RULES.values()
    ]
    driver = {"name": "Wavesmith", "version": result.wavesmith_version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "automationDetails": {"id": f"wavesmith/{','.join(result.targets)}"},
        "results": [_result(f, names) for f in result.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": f"Not looked at: {s.what}: {s.reason}"}}
                    for s in result.skipped
                ],
            }
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(f: Finding, rules: list[str]) -> dict[str, Any]:
    uri = quote(f.path)
    words = " ".join(w for w in (f.message, f.remedy, f"Evidence: {f.evidence}, {', '.join(f.targets)}.") if w)
    found: dict[str, Any] = {
        "ruleId": f.rule,
        "level": _LEVELS[f.level] if f.origin == "introduced" else "note",
        "message": {"text": words},
        "baselineState": "new" if f.origin == "introduced" else "unchanged",
        "partialFingerprints": {"wavesmith/v1": f.fingerprint},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": f.line, "endLine": max(f.line, f.end_line)},
                }
            }
        ],
        "properties": {"kernel": f.kernel, "evidence": f.evidence, "targets": list(f.targets)},
    }
    if f.rule in rules:
        found["ruleIndex"] = rules.index(f.rule)
    s = f.fix.suggestion if f.fix is not None else None
    if f.fix is not None and s is not None:
        replacement = {
            "deletedRegion": {"startLine": s.start, "startColumn": 1, "endLine": s.end + 1, "endColumn": 1},
            "insertedContent": {"text": s.text + "\n"},
        }
        change = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}, "replacements": [replacement]}
        description = {"text": f"{f.fix.title}. {f.fix.statement}"}
        found["fixes"] = [{"description": description, "artifactChanges": [change]}]
    return found
