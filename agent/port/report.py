"""The report of a port as Markdown."""

from __future__ import annotations

from agent.port.result import PortResult


def markdown(result: PortResult) -> str:
    """One page: outcome, kernels with their evidence, shims with their contracts, rounds, refusals, what is left."""
    lines = [f"# Port of {result.name}", "", result.summary, ""]
    lines += [f"Targets: {', '.join(result.targets)}. Outcome: {result.outcome} (exit code {result.exit_code}).", ""]
    if result.kernels:
        lines += ["## Kernels", "", "| kernel | file | evidence | note |", "|---|---|---|---|"]
        lines += [f"| `{k.kernel}` | {k.file}:{k.line} | {k.evidence} | {_cell(k.reason)} |" for k in result.kernels]
        lines.append("")
    if result.programs:
        lines += ["## Programs", "", "| what ran | file | evidence | launches | note |", "|---|---|---|---|---|"]
        for p in result.programs:
            launches = ", ".join(f"{n} on {target}" for target, n in p.launched.items())
            lines.append(f"| {_cell(p.what)} | {p.file} | {p.evidence} | {launches} | {_cell(p.reason)} |")
        lines.append("")
    if result.refusals:
        lines += ["## Without counterpart", ""]
        lines += [f"- {r.file}:{r.line} ({', '.join(r.targets)}): {r.reason}. {r.route}" for r in result.refusals]
        lines.append("")
    if result.shim_uses:
        lines += ["## Shims", "", "| shim | used for | contract | note |", "|---|---|---|---|"]
        lines += [
            f"| {u.name} | {_cell(', '.join(u.symbols))} | {u.contract} | {_cell(u.note)} |" for u in result.shim_uses
        ]
        lines.append("")
    lines += ["## Rounds", ""]
    for r in result.rounds:
        errors = ", ".join(f"{p}: {n}" for p, n in r.errors.items()) or "not compiled"
        lines.append(f"{r.number}. errors {errors}")
        lines += [f"   - {a.file}: {a.rule}: {a.detail}" for a in r.applied]
        lines += [f"   - not taken: {text}" for text in r.rejected]
    lines.append("")
    if result.proposed_rules:
        lines += ["## Proposed rules", "", "```yaml", *result.proposed_rules.splitlines(), "```", ""]
    if result.diagnostics:
        lines += ["## Left over", "", *[f"- {d}" for d in result.diagnostics[:50]], ""]
    if result.findings:
        lines += ["## Findings", ""]
        lines += [
            f"- {f.file}:{f.line}: {f.kind}{f' ({f.target})' if f.target else ''}: {f.message}" for f in result.findings
        ]
        lines.append("")
    if result.build_commands:
        lines += ["## How it was compiled", "", *[f"- `{command}`" for command in result.build_commands.values()], ""]
    lines += ["## Versions", "", *[f"- {name}: {version}" for name, version in result.versions.items()], ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
