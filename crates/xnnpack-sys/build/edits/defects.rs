//! Corrections of defects: wrong results, and reads of memory that does not belong to the operands.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[BLOCKS_OF_WEIGHTS, SINGLE_ROWS, SPLITS, FOURTEEN_ROWS, PACKED_ROWS];

const BLOCKS_OF_WEIGHTS: Edit = Edit {
    name: "blocks of weights are not aligned",
    why: "weights behind the scales of a block need not be aligned, but are loaded with aligned loads",
    files: Files::These(&[
        "src/qd8-f16-qb4w-gemm/gen/qd8-f16-qb4w-gemm-1x8c8-minmax-avx2.c",
        "src/qd8-f16-qb4w-gemm/gen/qd8-f16-qb4w-gemm-3x8c8-minmax-avx2.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-14x16c8-minmax-avx512vnnigfni-prfm.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-1x16c8-minmax-avx512vnni-prfm.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-1x16c8-minmax-avx512vnnigfni-prfm.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-1x4c8-minmax-avx-ld128.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-1x4c8-minmax-sse2-ld128.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-1x4c8-minmax-sse41-ld128.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-1x8c8-minmax-avx2.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-3x4c8-minmax-sse41-ld128.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-3x8c8-minmax-avx2.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-4x4c8-minmax-avx-ld128.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-4x4c8-minmax-sse2-ld128.c",
        "src/qd8-f32-qb4w-gemm/gen/qd8-f32-qb4w-gemm-8x16c8-minmax-avx512vnni-prfm.c",
    ]),
    changes: &[
        ("_mm_load_ps(", "_mm_loadu_ps(", 6),
        ("_mm_load_si128(", "_mm_loadu_si128(", 32),
        ("_mm256_load_si256(", "_mm256_loadu_si256(", 4),
        ("_mm512_load_si512(", "_mm512_loadu_si512(", 8),
    ],
};

const SINGLE_ROWS: Edit = Edit {
    name: "single rows of AMX move on",
    why: "XNNPACK advances the pointer of the last row of a tile instead of the single row, and reads its first inputs again and again",
    files: Files::These(&[
        "src/qd8-f16-qc8w-igemm/gen/qd8-f16-qc8w-igemm-16x64c4-minmax-avx512amx.c",
        "src/qd8-f32-qc8w-igemm/gen/qd8-f32-qc8w-igemm-16x64c4-minmax-avx512amx.c",
        "src/qs8-qc8w-igemm/gen/qs8-qc8w-igemm-16x64c4-minmax-fp32-avx512amx.c",
    ]),
    changes: &[(
        "// Directly load input for mr=1\n          a15 += 64;",
        "// Directly load input for mr=1\n          a0 += 64;",
        3,
    )],
};

const SPLITS: Edit = Edit {
    name: "splits without the first part",
    why: "XNNPACK takes a node without its first operator for a removed one; it may be a split whose first output is unused",
    files: Files::These(&["src/runtime.c"]),
    changes: &[
        ("if (opdata->operator_objects[0] == NULL) {", "if (opdata->reshape == NULL) {", 3),
        (
            "xnn_operator_type_to_string(opdata->operator_objects[0]->type)",
            "xnn_node_type_to_string(opdata->type)",
            2,
        ),
    ],
};

const GEMM_CONFIG: Files = Files::These(&["src/configs/gemm-config.c"]);

const FOURTEEN_ROWS: Edit = Edit {
    name: "no tile of 14 rows for 4-bit weights in blocks",
    why: "the tile reads the quantization of 14 rows, but XNNPACK pads by 10 (XNN_EXTRA_QUANTIZATION_PARAMS): the last row is \
          wrong if the rows exceed a multiple of 14 by 1 to 3; the next choice has 8 rows",
    files: GEMM_CONFIG,
    changes: &[(
        "if (!XNN_PLATFORM_MOBILE && hardware_config->use_x86_avx512vnnigfni && \
         cpuinfo_get_core(0)->uarch != cpuinfo_uarch_zen4) {\n        qd8_f32_qb4w_gemm_config.",
        "if (false && hardware_config->use_x86_avx512vnnigfni) {\n        qd8_f32_qb4w_gemm_config.",
        1,
    )],
};

const PACKED_ROWS: Edit = Edit {
    name: "packing reads no further than the weights",
    why: "microkernels that pack 8-bit weights for dot products read 8 bytes at the end of each row, up to 7 of them behind \
          the weights, which may be the end of a mapped file; see csrc/packing/within_rows.c",
    files: GEMM_CONFIG,
    changes: &[
        (
            "#include \"xnnpack/packw.h\"\n",
            "#include \"xnnpack/packw.h\"\n#include \"packing/within_rows.h\"\n",
            1,
        ),
        (
            "xnn_qs8_packw_gemm_goi_ukernel_x8c8__avxvnni;",
            "xnnpack_sys_qs8_packw_gemm_goi_x8c8__avxvnni;",
            1,
        ),
        (
            "xnn_qs8_packw_gemm_goi_ukernel_x8c8__avxvnni_prfm;",
            "xnnpack_sys_qs8_packw_gemm_goi_x8c8__avxvnni_prfm;",
            2,
        ),
        (
            "xnn_qs8_to_qu8_packw_gemm_goi_ukernel_x8c8__avxvnni;",
            "xnnpack_sys_qs8_to_qu8_packw_gemm_goi_x8c8__avxvnni;",
            1,
        ),
        (
            "xnn_qs8_packw_gemm_goi_ukernel_x8c8__avx256vnni_prfm;",
            "xnnpack_sys_qs8_packw_gemm_goi_x8c8__avx256vnni_prfm;",
            1,
        ),
        (
            "xnn_qs8_packw_gemm_goi_ukernel_x16c8__avx256vnni_prfm;",
            "xnnpack_sys_qs8_packw_gemm_goi_x16c8__avx256vnni_prfm;",
            1,
        ),
        (
            "xnn_qs8_to_qu8_packw_gemm_goi_ukernel_x16c8__avx256vnni;",
            "xnnpack_sys_qs8_to_qu8_packw_gemm_goi_x16c8__avx256vnni;",
            1,
        ),
    ],
};
