#!/usr/bin/env bash
# The parts of CUDA that compile kernels without a GPU: NVRTC, ptxas and the headers, as Python wheels.
# usage: install_cuda_tools.sh DIR
set -euo pipefail
python3 -m pip install --quiet --no-deps --upgrade --target "${1:?the folder to install to}" \
    nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79
