#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, with one summary at the end.
set -uo pipefail
export LC_ALL=C

all_stages=criterion,opencl,sanitizer,endurance,large,tool

usage() {
  cat <<TEXT
usage: tests/gpu.sh [--stages LIST] [BUILD_FOLDER] [LOG_FOLDER]

Runs what has been built (scons lib tools tests) on this machine's NVIDIA GPU; it builds nothing itself. The folders
are build/release-gcc and build/gpu-logs unless named. LIST is comma-separated, all of them by default:

  criterion  every test on cuda, once for each kernel variant (cubin, ptx, nvrtc), and on cpu as the reference
  opencl     every test on the GPU's OpenCL driver
  sanitizer  compute-sanitizer: memcheck, racecheck, initcheck and synccheck over reductions and updates
  endurance  10,000 steps in a row
  large      tensors of more than 2^31 and 2^32 elements; needs 60 GB of GPU memory, skips what does not fit
  tool       gradguard step and the training example, their output bytes compared with those of the cpu

GG_TEST_DEVICE_OPENCL names another OpenCL device than "opencl:name=NVIDIA". COMPUTE_SANITIZER is its path, if it is
not in PATH or /usr/local/cuda.

The last line is \`N passed, N failed, N skipped\`; the exit status is 0 only if something passed and nothing failed.
TEXT
}

stages=$all_stages
folders=()
while (($#)); do
  case "$1" in
    --stages)
      stages="${2:-}"
      shift
      ;;
    --stages=*) stages="${1#*=}" ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*)
      usage >&2
      exit 2
      ;;
    *) folders+=("$1") ;;
  esac
  shift
done
IFS=, read -r -a wanted <<<"$stages"
for stage in "${wanted[@]}"; do
  if [[ ",$all_stages," != *",$stage,"* ]]; then
    echo "tests/gpu.sh: no such stage: \"$stage\"; expected some of $all_stages" >&2
    exit 2
  fi
done
if ((${#folders[@]} > 2 || ${#wanted[@]} == 0)); then
  usage >&2
  exit 2
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath -m "${folders[0]:-$root/build/release-gcc}")
logs=$(realpath -m "${folders[1]:-$root/build/gpu-logs}")
cd "$root" || exit 1
mkdir -p "$logs" || exit 1
programs=()
for source in tests/*/test_*.c; do
  name=$(basename "$source" .c)
  if [[ ! -x "$build/tests/$name" ]]; then
    echo "tests/gpu.sh: $build/tests/$name is not there: build with scons lib tools tests" >&2
    exit 2
  fi
  programs+=("$name")
done

# ---- Counting --------------------------------------------------------------------------------------------------------

passed=0
failed=0
skipped=0
failures=()

# Seconds since the time $1, as EPOCHREALTIME gave it.
since() {
  awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", to - from }'
}

ok() {
  passed=$((passed + 1))
  echo "  ok       $1"
}

# A failure by name, with the end of its log.
bad() {
  failed=$((failed + 1))
  failures+=("$1")
  echo "  FAILED   $1"
  if [[ -n "${2:-}" && -s "$2" ]]; then
    tail -n 25 "$2" | sed 's/^/             /'
    echo "             (log: $2)"
  fi
}

# What a TAP file says, a line for each test: passed, failed or skipped, its name and the reason. What the filter left
# out is not mentioned.
read_tap() {
  sed -nE \
    -e '/# SKIP test was skipped *$/d' \
    -e 's/^ok ([0-9]+ )?- ([^ ]+) +# SKIP *(.*)$/skipped \2 \3/p; t' \
    -e 's/^ok ([0-9]+ )?- ([^ ]+).*$/passed \2/p' \
    -e 's/^not ok ([0-9]+ )?- ([^ ]+).*$/failed \2/p' "$1"
}

# Runs the tests of program $2 that match the filter $3, as stage $1; further arguments are put in front of it.
run_tests() {
  local label="$1" name="$2" filter="$3" status=0 start=$EPOCHREALTIME
  shift 3
  local log="$logs/$label.$name.log" tap="$logs/$label.$name.tap"
  rm -f "$tap"
  timeout --kill-after=10 600 "$@" "$build/tests/$name" -j1 --filter "$filter" --tap="$tap" >"$log" 2>&1 || status=$?
  local state test reason good=0 wrong=0 left=0
  local -a skips=() wrongs=()
  while read -r state test reason; do
    case "$state" in
      passed) good=$((good + 1)) ;;
      failed)
        wrong=$((wrong + 1))
        wrongs+=("$label: $test")
        ;;
      skipped)
        left=$((left + 1))
        skips+=("$test: $reason")
        ;;
    esac
  done < <([[ -f "$tap" ]] && read_tap "$tap")
  passed=$((passed + good))
  skipped=$((skipped + left))
  stage_tests=$((stage_tests + good + wrong + left))
  if ((wrong)); then
    failed=$((failed + wrong))
    failures+=("${wrongs[@]}")
    echo "  FAILED   $label $name  $good passed, $wrong failed, $left skipped, $(since "$start")"
    tail -n 40 "$log" | sed 's/^/             /'
    echo "             (log: $log)"
  elif ((status)); then
    bad "$label $name: exit status $status" "$log"
  elif ((good + left)); then
    echo "  ok       $label $name  $good passed, $left skipped, $(since "$start")"
  fi
  if ((left)); then
    printf '             skipped %s\n' "${skips[@]}"
  fi
}

# ---- Stages ----------------------------------------------------------------------------------------------------------

# Those that have no stage of their own.
general_programs() {
  printf '%s\n' "${programs[@]}" | grep -Ev '^test_(endurance|large)$'
}

stage_criterion() {
  local name variant
  for name in $(general_programs); do
    run_tests cpu "$name" '*/!(*_opencl|*_cuda)'
  done
  for variant in cubin ptx nvrtc; do
    for name in $(general_programs); do
      GG_TEST_REQUIRE=cuda GRADGUARD_CUDA_KERNELS=$variant run_tests "cuda-$variant" "$name" '*/*_cuda'
    done
  done
}

stage_opencl() {
  local name
  export GG_TEST_DEVICE_OPENCL="${GG_TEST_DEVICE_OPENCL:-opencl:name=NVIDIA}"
  for name in $(general_programs) test_endurance; do
    GG_TEST_REQUIRE=opencl run_tests opencl "$name" '*/*_opencl'
  done
}

stage_endurance() {
  GG_TEST_REQUIRE=cuda run_tests endurance test_endurance '*/*_cuda'
}

stage_large() {
  GG_TEST_REQUIRE=cuda run_tests large test_large '*/*_cuda'
}

find_sanitizer() {
  local path
  for path in "${COMPUTE_SANITIZER:-}" "$(command -v compute-sanitizer)" \
    /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda/compute-sanitizer/compute-sanitizer; do
    if [[ -n "$path" && -x "$path" ]]; then
      echo "$path"
      return
    fi
  done
  return 1
}

# True if a log has a summary, every summary counts nothing, and the filter of a test program let some test through.
sanitizer_is_content() {
  local summaries
  ! grep -qF 'Tested: 0 ' "$1" || return 1
  summaries=$(grep -E '(ERROR|RACECHECK) SUMMARY:' "$1") || return 1
  ! grep -qvE 'SUMMARY: 0 (errors|hazards displayed \(0 errors, 0 warnings\))' <<<"$summaries"
}

# One command under one tool of the sanitizer. Calls that fail on purpose are no findings; tests check them.
sanitize() {
  local tool="$1" label="$2" status=0 start=$EPOCHREALTIME
  shift 2
  local log="$logs/sanitizer.$tool.$label.log" options=()
  if [[ "$tool" == memcheck ]]; then
    options+=(--report-api-errors no)
  fi
  timeout --kill-after=10 300 "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 99 "${options[@]}" \
    "$@" >"$log" 2>&1 || status=$?
  stage_tests=$((stage_tests + 1))
  if ((status)); then
    bad "sanitizer $tool $label: exit status $status" "$log"
  elif ! sanitizer_is_content "$log"; then
    bad "sanitizer $tool $label: findings, or no summary" "$log"
  else
    ok "sanitizer $tool $label  $(grep -cE 'SUMMARY: 0' "$log") summaries, no finding, $(since "$start")"
  fi
}

stage_sanitizer() {
  local tool entry sanitizer
  if ! sanitizer=$(find_sanitizer); then
    bad "sanitizer: compute-sanitizer was not found; it is part of the CUDA toolkit (COMPUTE_SANITIZER gives its path)"
    return
  fi
  # Reductions and updates of every dtype, alignment and number of blocks; replayed reductions; clipping and skipping.
  local suites=(
    'test_cases|*/*_cuda'
    'test_statistics|*/@(repeated_runs|gradients_can|the_census)*_cuda'
    'test_decision|*/@(in_place_and_out|skip_leaves|one_norm|plain_step_gives)*_cuda'
    'test_bits|*/@(a_step_gives|the_twelve)*_cubin_cuda'
  )
  for tool in memcheck racecheck initcheck synccheck; do
    for entry in "${suites[@]}"; do
      GG_TEST_REQUIRE=cuda sanitize "$tool" "${entry%%|*}" "$build/tests/${entry%%|*}" -j1 --filter "${entry#*|}"
    done
    sanitize "$tool" gradguard-step "$build/gradguard" step --device cuda --max-norm 0.5 --grad-scale 65536 \
      --params examples/data/params.safetensors --state examples/data/state.safetensors \
      --grads examples/data/grads_ok.safetensors \
      --out-params "$logs/sanitizer.params.safetensors" --out-state "$logs/sanitizer.state.safetensors"
  done
}

# One step on the dump $1 under loss scale $2, which is to end with status $3; the outputs go to $logs/tool.$4.*, the
# other arguments to the tool.
dump_step() {
  local dump="$1" scale="$2" expected="$3" label="$4" status=0
  shift 4
  rm -f "$logs/tool.$label".*.safetensors
  "$build/gradguard" step "$@" --grad-scale "$scale" --max-norm 0.5 \
    --params examples/data/params.safetensors --state examples/data/state.safetensors \
    --grads "examples/data/$dump.safetensors" --report json \
    --out-params "$logs/tool.$label.params.safetensors" --out-state "$logs/tool.$label.state.safetensors" \
    >"$logs/tool.$label.log" 2>&1 || status=$?
  if ((status != expected)); then
    bad "tool $label: exit status $status, expected $expected" "$logs/tool.$label.log"
    return 1
  fi
}

same_bytes() {
  local label="$1" reference="$2" file
  for file in params state; do
    if ! cmp "$logs/tool.$label.$file.safetensors" "$logs/tool.$reference.$file.safetensors" \
      >>"$logs/tool.$label.log" 2>&1; then
      bad "tool $label: its $file are not those of $reference" "$logs/tool.$label.log"
      return
    fi
  done
  ok "tool $label  the bytes of $reference"
}

stage_tool() {
  local dump scale expected variant mode
  while read -r dump scale expected; do
    stage_tests=$((stage_tests + 1))
    dump_step "$dump" "$scale" "$expected" "$dump-cpu" --device cpu || continue
    for variant in cubin ptx nvrtc; do
      for mode in out-of-place in-place; do
        local options=(--device cuda --kernel "$variant")
        if [[ "$mode" == in-place ]]; then
          options+=(--in-place)
        fi
        dump_step "$dump" "$scale" "$expected" "$dump-$variant-$mode" "${options[@]}" &&
          same_bytes "$dump-$variant-$mode" "$dump-cpu"
      done
    done
  done <<'DUMPS'
grads_ok 65536 0
grads_overflow 8388608 3
DUMPS
  if "$build/examples/train_digits" cpu >"$logs/tool.train-cpu.log" 2>/dev/null &&
    "$build/examples/train_digits" cuda >"$logs/tool.train-cuda.log" 2>"$logs/tool.train-cuda.errors.log" &&
    cmp -s "$logs/tool.train-cpu.log" "$logs/tool.train-cuda.log"; then
    ok "tool train_digits  $(tail -n 1 "$logs/tool.train-cuda.log")"
  else
    bad "tool train_digits: cuda does not do what cpu does" "$logs/tool.train-cuda.errors.log"
  fi
}

# ---- All -------------------------------------------------------------------------------------------------------------

"$build/gradguard" devices || true
for stage in "${wanted[@]}"; do
  echo "$stage:"
  start=$EPOCHREALTIME
  stage_tests=0
  stage_failed=$failed
  "stage_$stage"
  if ((stage_tests == 0 && failed == stage_failed)); then
    bad "$stage: it ran nothing"
  fi
  echo "  ($(since "$start"))"
done
if ((${#failures[@]})); then
  printf '\nfailed:\n'
  printf '  %s\n' "${failures[@]}"
fi
echo "$passed passed, $failed failed, $skipped skipped"
((passed > 0 && failed == 0))
