//! Systems that XNNPACK does not know.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[WITHOUT_EMSCRIPTEN, WITHOUT_MAPPINGS, WITHOUT_NEON];

const WITHOUT_EMSCRIPTEN: Edit = Edit {
    name: "WebAssembly without Emscripten",
    why: "XNNPACK takes all WebAssembly for Emscripten's, whose headers it does not need",
    files: Files::These(&["src/memory.c", "src/configs/gemm-config.c"]),
    changes: &[
        (
            "#if XNN_PLATFORM_WEB\n#include <emscripten/emscripten.h>\n",
            "#if defined(__EMSCRIPTEN__)\n#include <emscripten/emscripten.h>\n",
            1,
        ),
        (
            "#if XNN_ARCH_WASMSIMD\n  #include <emscripten.h>\n",
            "#if defined(__EMSCRIPTEN__)\n  #include <emscripten.h>\n",
            1,
        ),
        // Browsers tell the number of processors, from which XNNPACK guesses whether they have AVX.
        (
            r"  EM_JS(int, hardware_concurrency, (void), {
    var concurrency = 1;
    try {
      concurrency = self.navigator.hardwareConcurrency;
    } catch(e) {
      // d8 environment doesn't provide `self`, thus we keep the default
    }
    return concurrency;
  });
",
            "  static int hardware_concurrency(void) { return 1; }\n",
            1,
        ),
    ],
};

const WITHOUT_MAPPINGS: Edit = Edit {
    name: "WASI without mmap",
    why: "WASI does not map memory",
    files: Files::These(&["src/xnnpack/common.h"]),
    changes: &[(
        "#if XNN_PLATFORM_WINDOWS\n  #define XNN_HAS_MMAP 0\n",
        "#if XNN_PLATFORM_WINDOWS || defined(__wasi__)\n  #define XNN_HAS_MMAP 0\n",
        1,
    )],
};

const WITHOUT_NEON: Edit = Edit {
    name: "WebAssembly without NEON's header",
    why: "two microkernels for WebAssembly include ARM's header, which Emscripten has for compatibility",
    files: Files::These(&[
        "src/f32-qs8-vcvt/gen/f32-qs8-vcvt-wasmsimd-magic-u32.c",
        "src/f32-qu8-vcvt/gen/f32-qu8-vcvt-wasmsimd-magic-u32.c",
    ]),
    changes: &[("#include <arm_neon.h>\n", "#include <wasm_simd128.h>\n", 2)],
};
