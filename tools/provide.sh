# shellcheck shell=bash
# What ./dev needs and the machine lacks: packages of the distribution, and from PyPI what it does not have. Everything
# is named, with its size, before it is fetched. Sourced by ./dev; GRADGUARD_OFFLINE=1 fetches nothing.

tools=build/tools # a Python environment of this checkout

# apt-get as administrator. While another program holds apt's locks, as on a machine that has just been started, it says
# so and waits, ten minutes at most.
administer_apt() {
  local administrator=() waited=0 status
  if ((EUID != 0)); then administrator=(sudo); fi
  while true; do
    status=0
    "${administrator[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" >build/apt.log 2>&1 || status=$?
    if ((status == 0)) || ! grep -qE 'Could not get lock|Unable to lock|Unable to acquire' build/apt.log; then
      return $status
    fi
    if ((waited >= 600)); then
      echo "Another program has held apt's lock for ten minutes:" >&2
      return $status
    fi
    if ((waited % 60 == 0)); then echo "Waiting for another program to release apt's lock (apt or dpkg is running)."; fi
    sleep 5
    waited=$((waited + 5))
  done
}

# How much apt would fetch for these packages, such as "34.5 MB"; nothing where it does not say.
download_size() {
  { LC_ALL=C apt-get install -o Debug::NoLocking=1 --assume-no --no-install-recommends "$@" 2>/dev/null || true; } |
    sed -nE 's|^Need to get (.*/)?(.*B) of archives.*|\2|p'
}

# True if apt can install the package. One that apt knows only as another's dependency has "(none)" for a candidate.
apt_offers() {
  local policy
  policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null) || return 1
  [[ "$policy" =~ Candidate:\ [^\(] ]]
}

# Those of the named packages that are not installed, in `missing`.
find_missing() {
  local package
  missing=()
  for package in "$@"; do
    if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
      missing+=("$package")
    fi
  done
}

# Installs those of the named packages that are missing, after saying which and how much that fetches.
need() {
  local missing size
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "No apt here. Needed, by their Debian names: $*"
    return
  fi
  find_missing "$@"
  if ((${#missing[@]} == 0)); then
    return
  fi
  if [[ -n "${GRADGUARD_OFFLINE:-}" ]]; then
    echo "Missing, and not installed because GRADGUARD_OFFLINE is set: ${missing[*]}"
    return
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    echo "Missing packages: ${missing[*]}" >&2
    echo "Not root, and there is no sudo. As root: apt-get update && apt-get install ${missing[*]}" >&2
    exit 1
  fi
  echo "Missing packages, to be installed with apt: ${missing[*]}"
  administer_apt update -qq || {
    tail -n 5 build/apt.log >&2
    echo "The package lists could not all be updated; trying with those that are there." >&2
  }
  size=$(download_size "${missing[@]}")
  echo "Fetching ${size:-an unknown amount}."
  administer_apt install -y -qq --no-install-recommends "${missing[@]}" || {
    tail -n 20 build/apt.log >&2
    echo "Installing failed; the whole of apt's output is in build/apt.log." >&2
    exit 1
  }
}

# Installs Python packages into build/tools: $1 says what for and how much that fetches, the rest is for pip.
need_python() {
  local purpose="$1" status=0
  shift
  if [[ -n "${GRADGUARD_OFFLINE:-}" ]]; then
    echo "Not fetched because GRADGUARD_OFFLINE is set: $purpose"
    return
  fi
  if [[ ! -x $tools/bin/pip ]]; then
    need python3-venv
    /usr/bin/python3 -m venv --system-site-packages $tools
  fi
  echo "Fetching from PyPI into $tools: $purpose"
  $tools/bin/pip install --quiet --disable-pip-version-check "$@" >build/pip.log 2>&1 || status=$?
  if ((status)); then tail -n 20 build/pip.log >&2; fi
  return $status
}

# clang-format in one version everywhere, since each formats a little differently.
need_formatter() {
  local version=14.0.6
  if [[ "$($tools/bin/clang-format --version 2>/dev/null)" == *" $version"* ]]; then return; fi
  need_python "clang-format $version, 1 MB" "clang-format==$version"
}

# PyTorch, which the oracle compares with: the distribution's, or else PyPI's.
need_pytorch() {
  local version=2.11.0
  if apt_offers python3-torch; then
    need python3-torch
  elif ! $tools/bin/python -c 'import torch' 2>/dev/null; then
    need_python "PyTorch $version for processors, 190 MB" "torch==$version" \
      --index-url https://download.pytorch.org/whl/cpu --timeout 15 --retries 1 2>/dev/null ||
      need_python "PyTorch $version, 3 GB with NVIDIA's libraries, without which PyPI does not have it" "torch==$version"
  fi
}

# The folder of a CUDA toolkit that need_cuda_toolkit has installed; nothing where there is none.
fetched_cuda_toolkit() {
  local folder
  for folder in "$tools"/lib/python3*/site-packages/nvidia/cu13; do
    if [[ -x $folder/bin/nvcc ]]; then realpath "$folder"; fi
  done
}

# nvcc, NVRTC and NVIDIA's headers: no driver and no GPU are needed to compile the kernels and to compare declarations.
need_cuda_toolkit() {
  if command -v nvcc >/dev/null || [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc || -n "$(fetched_cuda_toolkit)" ]]; then
    return
  fi
  need_python "nvcc, NVRTC and the headers of CUDA 13.0, 200 MB" \
    "nvidia-cuda-nvcc==13.0.*" "nvidia-nvvm==13.0.*" "nvidia-cuda-crt==13.0.*" "nvidia-cuda-runtime==13.0.*" \
    "nvidia-cuda-nvrtc==13.0.*" "nvidia-cuda-cccl==13.0.*"
}

# Lets the build and the tests find that toolkit, if there is one.
use_fetched_cuda_toolkit() {
  local folder
  folder=$(fetched_cuda_toolkit)
  if [[ -z "$folder" ]]; then return; fi
  export CUDA_HOME="$folder" LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
