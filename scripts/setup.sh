#!/usr/bin/env bash
# Sets up a virtual environment with Wavesmith and what its development needs. Usage: setup.sh VENV
# System packages are asked of apt only when something is missing, with sudo when not root.
set -euo pipefail
venv=$1
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)

need=()
command -v gcc >/dev/null || need+=(gcc libc6-dev)
command -v git >/dev/null || need+=(git)
command -v bwrap >/dev/null || need+=(bubblewrap)
command -v "$python" >/dev/null || need+=(python3)
"$python" -c 'import venv, ensurepip' 2>/dev/null || need+=(python3-venv)
[ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)/Python.h" ] || need+=(python3-dev)
if [ "${#need[@]}" -gt 0 ]; then
  echo "installing system packages: ${need[*]}"
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get -qq update
  $sudo apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${need[@]}"
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "setup: $($python --version) is too old, Wavesmith needs Python 3.11 or newer. Run make PYTHON=python3.12" >&2
  exit 2
}

extra=()
constraints=(-c "$root/constraints.txt")
wants="dev"
if [ -n "${SYSTEM_SITE:-}" ]; then
  # Never install torch or triton over the machine's own build: freeze both at what is there.
  extra=(--system-site-packages)
  own=$(mktemp)
  "$python" - >"$own" <<'PY'
from importlib.metadata import PackageNotFoundError, version
for name in ("torch", "triton", "pytorch-triton-rocm"):
    try:
        print(f"{name}=={version(name)}")
    except PackageNotFoundError:
        pass
PY
  constraints=(-c "$own")
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "${extra[@]}" "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check ${PIP_FLAGS:-} "${constraints[@]}" -e "$root[$wants]"
echo "ready: $("$venv/bin/wavesmith" --version)"
