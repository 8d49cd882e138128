#!/usr/bin/env bash
# Tree attention on the GPU of this machine: the contract tests of the kernels, then a short bench, as one table at the end.
#
#   kernels/device_check.sh                 builds here (cargo; offline if the registry was fetched before), then checks
#   kernels/device_check.sh --pack FOLDER   builds, and puts what a check needs into FOLDER, for a machine without Rust
#   kernels/device_check.sh --from FOLDER   checks with what lies in FOLDER
#   kernels/device_check.sh --small ...     sizes for a CPU behind software Vulkan
#
# Devices: wgpu always (a Vulkan driver must be there), cuda where an NVIDIA driver answers; DEVICES="cuda" says otherwise, and with
# --pack what is built, for the machine that packs need not have the device. Building cuda downloads an LLVM. PROFILE=dev builds
# faster. A check takes under 8 minutes: steps have limits, and one that runs into its own has failed.
# Exit status: 0 if every step passed, 1 if one failed, 2 if it could not start.
set -uo pipefail
cd "$(dirname "$0")/.."

mode=check folder='' small='' from=''
while [ $# -gt 0 ]; do
    case "$1" in
        --pack) mode=pack folder=${2:?--pack needs a folder}; shift ;;
        --from) from=yes folder=${2:?--from needs a folder}; shift ;;
        --small) small=yes ;;
        *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done

if [ -z "${DEVICES:-}" ]; then
    DEVICES=wgpu
    if nvidia-smi -L >/dev/null 2>&1; then DEVICES="wgpu cuda"; fi
fi
# A test that needs a device fails where the device is missing instead of being skipped.
case " $DEVICES " in *" wgpu "*) export PLEACH_REQUIRE_WGPU=1 ;; esac
case " $DEVICES " in *" cuda "*) export PLEACH_REQUIRE_CUDA=1 ;; esac
# The Vulkan loader looks for it, and says so on standard error where it is missing.
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Builds the program and the tests that reach a device, with the features of the whole workspace, into a folder.
build() {
    local features=pleach-bench/ndarray profile=${PROFILE:-release} target=${CARGO_TARGET_DIR:-target} device file name
    for device in $DEVICES; do features+=,pleach-bench/$device; done
    cargo build --profile "$profile" -p pleach-bench -p pleach-kernels --features "$features" --bins \
        --test it --test cube_half --test cube_compilations \
        --message-format=json-render-diagnostics >"$work/cargo.json" || return 1
    mkdir -p "$1" && rm -f "$1"/test-* && cp "$target/${profile/#dev/debug}/pleach-bench" "$1/pleach-bench" || return 1
    grep 'pleach-kernels@' "$work/cargo.json" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' >"$work/tests"
    while read -r file; do
        name=$(basename "$file")
        cp "$file" "$1/test-${name%-*}" || return 1
    done <"$work/tests"
    strip "$1"/* || true
}

programs=$work/programs
if [ -z "$from" ]; then
    build "$programs" || exit 2
else
    mkdir -p "$programs" && cp "$folder"/*.gz "$programs" && gunzip "$programs"/*.gz && chmod +x "$programs"/* || exit 2
fi
if [ "$mode" = pack ]; then
    mkdir -p "$folder" && rm -f "$folder"/*.gz && gzip "$programs"/* && cp "$programs"/*.gz "$folder" || exit 2
    du -sh "$folder"
    exit 0
fi

failed=0
SECONDS=0
# Runs a step under a limit of seconds, its own and what is left of all, and notes how it went.
step() {
    local name=$1 limit=$2 start=$SECONDS state=passed left=$((470 - SECONDS))
    shift 2
    printf '\n== %s\n' "$name"
    if [ "$left" -lt "$limit" ]; then limit=$((left > 1 ? left : 1)); fi
    timeout "$limit" "$@" || { state="failed ($?)"; failed=1; }
    printf '%-36s %-14s %4d s\n' "$name" "$state" $((SECONDS - start)) >>"$work/steps"
}

# A bench whose output is shown and kept.
bench() {
    local device=$1
    shift
    "$programs/pleach-bench" --device "$device" "$@" 2>&1 | tee "$work/bench-$device"
}
export -f bench
export programs work

for program in "$programs"/test-*; do
    step "tests: ${program##*/test-}" 380 "$program" --quiet
done
if [ -n "$small" ]; then
    sizes=(--problem fold,cleared-results --tokens 256 --heads 2 --repeats 2 --product 256)
else
    sizes=(--problem causal,fold,cleared-results,group-long-answers --tokens 512,4096,8192 --repeats 5)
fi
for device in $DEVICES; do
    step "bench: $device" 120 bash -o pipefail -c 'bench "$@"' bench "$device" "${sizes[@]}"
done

printf '\n== results\n'
cat "$work/steps"
for device in $DEVICES; do
    printf '\n%s\n' "$device"
    grep -E '^(Attention,|problem +way|[a-z-]+ +tree attention)' "$work/bench-$device"
done
exit "$failed"
