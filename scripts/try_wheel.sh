#!/usr/bin/env bash
# Builds the wheel, installs it in a clean virtual environment and runs one job from it, away from the checkout.
# Usage: try_wheel.sh DEV_VENV (whose torch and triton the clean environment borrows, read-only)
set -euo pipefail
dev=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$dev/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$work/dist" "$root"
"$dev/bin/python" -m venv "$work/venv"
# Heavy and unchanged: torch, triton and the other dependencies come from the development environment by a .pth file,
# after the wheel's own files; the project itself must come from the wheel.
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$work"/dist/wavesmith-*.whl
"$dev/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' >"$site/zz_borrowed.pth"
cp "$root/examples/softmax/kernel.py" "$work/kernel.py"
cd "$work"
"$work/venv/bin/python" - "$root" <<'PY'
import sys
import agent, api, prompts, sandbox, skills
for package in (agent, api, prompts, sandbox, skills):
    assert not package.__file__.startswith(sys.argv[1]), f"{package.__name__} came from the checkout: {package.__file__}"
PY
code=0
"$work/venv/bin/wavesmith" optimize kernel.py --target gfx950 --out out --json >report.json || code=$?
[ "$code" = 0 ] || [ "$code" = 3 ] || { echo "the job from the wheel ended with $code" >&2; cat report.json >&2; exit 1; }
echo "wheel: installed, one job ended with $code"
