"""Runs a WebAssembly program: run_wasm.py PROGRAM.wasm [ARGUMENT...]

The program sees the working folder, and its standard streams are those of this script.
"""

import sys

from wasmtime import Engine, ExitTrap, Linker, Module, Store, WasiConfig


def main() -> int:
    engine = Engine()
    store, linker, wasi = Store(engine), Linker(engine), WasiConfig()
    wasi.argv = sys.argv[1:]
    wasi.inherit_env()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir(".", ".")
    store.set_wasi(wasi)
    linker.define_wasi()
    instance = linker.instantiate(store, Module.from_file(engine, sys.argv[1]))
    try:
        instance.exports(store)["_start"](store)
    except ExitTrap as end:
        return end.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
