#!/usr/bin/env python3
"""Compiles CUDA C++ without a GPU and prints what ptxas says of each kernel.

usage: cuda_figures.py TOOLS ARCH[,ARCH...] SOURCE.cu...

TOOLS is a folder filled by install_cuda_tools.sh. One line a source and architecture, separated by tabs:
name, architecture, registers, bytes of shared memory, bytes of spill stores, bytes of spill loads.
"""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile


def library(tools):
    found = glob.glob(os.path.join(tools, "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.*"))
    if not found:
        sys.exit(f"no NVRTC below {tools}: run install_cuda_tools.sh {tools}")
    return ctypes.CDLL(found[0])


def text(nvrtc, program, size, get):
    count = ctypes.c_size_t()
    getattr(nvrtc, size)(program, ctypes.byref(count))
    buffer = ctypes.create_string_buffer(count.value)
    getattr(nvrtc, get)(program, buffer)
    return buffer.value


def ptx(nvrtc, tools, source, arch):
    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), b"kernel.cu", 0, None, None)
    include = os.path.join(tools, "nvidia", "cuda_runtime", "include")
    options = [f"--gpu-architecture={arch}".encode(), f"--include-path={include}".encode()]
    if nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
        sys.exit(f"{source}: {text(nvrtc, program, 'nvrtcGetProgramLogSize', 'nvrtcGetProgramLog').decode()}")
    return text(nvrtc, program, "nvrtcGetPTXSize", "nvrtcGetPTX")


def figures(nvrtc, tools, source, arch):
    ptxas = os.path.join(tools, "nvidia", "cuda_nvcc", "bin", "ptxas")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "wb") as file:
            file.write(ptx(nvrtc, tools, source, arch))
        command = [ptxas, f"-arch={arch}", "-v", path, "-o", os.path.join(folder, "kernel.cubin")]
        said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"{source} on {arch}: {said.stderr}")
    number = lambda pattern: int((re.search(pattern, said.stderr) or [0, 0])[1])
    return [
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes smem"),
        number(r"(\d+) bytes spill stores"),
        number(r"(\d+) bytes spill loads"),
    ]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tools, architectures, sources = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    nvrtc = library(tools)
    for source in sources:
        for arch in architectures:
            name = os.path.splitext(os.path.basename(source))[0]
            print(name, arch, *figures(nvrtc, tools, source, arch), sep="\t")


if __name__ == "__main__":
    main()
