//! Changes to XNNPACK's sources before they are compiled. The sources themselves stay as they are: copies in the build folder are
//! changed, and a text that is not found as often as its edit states fails the build.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// Changes that belong together.
pub struct Edit {
    /// Named in the error where the edit fails.
    pub name: &'static str,
    pub files: Files,
    pub changes: &'static [Change],
}

pub enum Files {
    /// Below XNNPACK's folder.
    These(&'static [&'static str]),
    /// All production microkernels for x86-64, whatever the target.
    X86Microkernels,
}

/// `(find, put, times)`: the text to look for, its replacement, and how often it occurs in all files of the edit together. `{}`
/// stands for one C identifier.
pub type Change = (&'static str, &'static str, usize);

/// On x86, maxima and minima give the second operand where one of the two is NaN. Some microkernels have the value first, so that NaN
/// becomes the bound.
const BOUNDS_FIRST: Edit = Edit {
    name: "bounds are the first operand",
    files: Files::X86Microkernels,
    changes: &[
        ("_max_ps({}, vmin)", "_max_ps(vmin, {})", 261),
        ("_min_ps({}, vmax)", "_min_ps(vmax, {})", 261),
        ("_max_ps({}, voutput_min)", "_max_ps(voutput_min, {})", 541),
        ("_min_ps({}, voutput_max)", "_min_ps(voutput_max, {})", 549),
        ("_max_ps({}, vy_min)", "_max_ps(vy_min, {})", 8),
        ("_min_ps({}, vy_max)", "_min_ps(vy_max, {})", 8),
    ],
};

/// Memory behind a row is read, too, and has weights of 0. XNNPACK leaves out every input with a weight of 0, so that NaN times 0
/// becomes 0.
const LAST_INPUTS: Edit = Edit {
    name: "inputs behind a row are left out by position",
    files: Files::These(&[
        "src/f32-gemm/gen/f32-gemm-4x2c4-minmax-sse.c",
        "src/f32-igemm/gen/f32-igemm-4x2c4-minmax-sse.c",
    ]),
    changes: &[(
        "_mm_cmpeq_ps(_mm_setzero_ps(), {})",
        "_mm_cmple_ps(_mm_set1_ps((float) (k / sizeof(float))), _mm_setr_ps(0.0f, 1.0f, 2.0f, 3.0f))",
        4,
    )],
};

/// Depthwise microkernels with more taps than a kernel has multiply a neighbour's inputs with weights of 0, which gives NaN where
/// such an input is not finite, see `csrc/indirection.h`.
const SPARE_TAPS: Edit = Edit {
    name: "spare taps read zeros",
    files: Files::These(&["src/operators/convolution-nhwc.c"]),
    changes: &[
        (
            "if (any_padding || tf_same_padding) {",
            "if (any_padding || tf_same_padding || \
             (ukernel_type == xnn_microkernel_type_dwconv && \
             convolution_op->ukernel.dwconv.tile_size > kernel_size)) {",
            1,
        ),
        (
            "const size_t step_width = convolution_op->dilation_width == 1 ?\n      \
             min(convolution_op->stride_width, kernel_width) : kernel_width;",
            "const size_t step_width = \
             xnnpack_sys_step_width(convolution_op, log2_input_element_size);",
            1,
        ),
    ],
};

/// The weights behind the scales of a block need not be aligned, but XNNPACK loads them as if they were.
const BLOCKS_OF_WEIGHTS: Edit = Edit {
    name: "blocks of weights are not aligned",
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

/// TFLite's maximum starts from the lower bound and ignores NaN. XNNPACK compares elements with each other, so that NaN may take the
/// place of a larger number.
const LARGEST_OF_NUMBERS: Edit = Edit {
    name: "max pooling ignores NaN",
    files: Files::These(&["src/f32-maxpool/f32-maxpool-9p8x-minmax-sse-c4.c"]),
    changes: &[
        (
            "_mm_max_ps(_mm_max_ps(vi0, vi1), {})",
            "_mm_max_ps({}, _mm_max_ps(vi1, _mm_max_ps(vi0, voutput_min)))",
            4,
        ),
        ("_mm_max_ps(vi2, vi3)", "_mm_max_ps(vi3, _mm_max_ps(vi2, voutput_min))", 4),
        ("_mm_max_ps(vi4, vi5)", "_mm_max_ps(vi5, _mm_max_ps(vi4, vmax23))", 4),
        ("_mm_max_ps(vi6, vi7)", "_mm_max_ps(vi7, _mm_max_ps(vi6, vmax45))", 4),
        ("_mm_max_ps(vmax2345, {})", "{}", 4),
        (
            "_mm_max_ps(_mm_min_ps(voutput_max, vmax), voutput_min)",
            "_mm_min_ps(voutput_max, vmax)",
            4,
        ),
    ],
};

/// Arm has one instruction for maxima that propagates NaN and another that ignores it.
const LARGEST_OF_NUMBERS_ON_ARM: Edit = Edit {
    name: "max pooling ignores NaN on Arm",
    files: Files::These(&["src/f32-maxpool/f32-maxpool-9p8x-minmax-neon-c4.c"]),
    changes: &[("vmaxq_f32(", "vmaxnmq_f32(", 36)],
};

/// SIGN of NaN is NaN, and so is the remainder of a division by 0.
const REFERENCE_KERNELS: Edit = Edit {
    name: "reference kernels propagate NaN",
    files: Files::These(&[
        "src/reference/unary-elementwise.cc",
        "src/reference/binary-elementwise.cc",
    ]),
    changes: &[
        (
            "float operator()(float x) const { return x < 0 ? -1 : x > 0 ? 1 : 0; }",
            "float operator()(float x) const { return x < 0 ? -1 : x > 0 ? 1 : x; }",
            1,
        ),
        (
            "// Define division by zero to be 0?\n    if (b == 0) {\n      return 0;\n    } else {\n      return std::fmod(a, b);\n    }",
            "return std::fmod(a, b);",
            1,
        ),
    ],
};

/// No integers stand for NaN or infinities, so that everything computed from a row with one of them is NaN. The range of a row with
/// NaN is NaN itself, see `csrc/special_f32.c`.
const QUANTIZED_ROWS: Edit = Edit {
    name: "rows that are not finite",
    files: Files::These(&["src/operator-run.c"]),
    changes: &[(
        "xnn_f32_qd8_asymmetric_quantization_params(minmax[0], minmax[1])",
        "__builtin_isfinite(minmax[1] - minmax[0]) \
         ? xnn_f32_qd8_asymmetric_quantization_params(minmax[0], minmax[1]) \
         : (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = __builtin_nanf(\"\")}",
        1,
    )],
};

/// Some operators compute with denormals, see `csrc/denormals.c`.
const DENORMALS: Edit = Edit {
    name: "operators that keep denormals",
    files: Files::These(&["src/operator-run.c"]),
    changes: &[(
        "uint32_t flags = PTHREADPOOL_FLAG_DISABLE_DENORMALS;",
        "uint32_t flags = xnnpack_sys_denormals_flag(op->flags, threadpool);",
        1,
    )],
};

/// A single row is read where it lies. XNNPACK moves the pointer of the last row of a tile instead, and reads the first inputs over
/// and over.
const SINGLE_ROWS: Edit = Edit {
    name: "single rows of AMX move on",
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

/// XNNPACK takes a node without its first operator for one that was removed. It may be a split whose first part nobody reads.
const SPLITS: Edit = Edit {
    name: "splits without the first part",
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

/// Applied in this order: several may change one file.
pub const EDITS: [Edit; 11] = [
    BOUNDS_FIRST,
    LAST_INPUTS,
    SPARE_TAPS,
    BLOCKS_OF_WEIGHTS,
    LARGEST_OF_NUMBERS,
    LARGEST_OF_NUMBERS_ON_ARM,
    REFERENCE_KERNELS,
    QUANTIZED_ROWS,
    DENORMALS,
    SINGLE_ROWS,
    SPLITS,
];

/// XNNPACK's sources, some of them as changed copies.
pub struct Edited {
    root: PathBuf,
    copies: PathBuf,
    files: Vec<String>,
}

impl Edited {
    /// Copies what `edits` change of `root` to the folder `copies`.
    pub fn write(
        root: &Path,
        copies: PathBuf,
        microkernels: &[String],
        edits: &[Edit],
    ) -> Result<Self> {
        let mut texts = BTreeMap::new();
        for edit in edits {
            edit.apply(root, microkernels, &mut texts)?;
        }
        for (file, text) in &texts {
            let copy = copies.join(file);
            fs::create_dir_all(copy.parent().unwrap_or(&copies))?;
            fs::write(copy, text)?;
        }
        Ok(Self { root: root.to_owned(), copies, files: texts.into_keys().collect() })
    }

    /// Where the file is that is to be compiled.
    pub fn path(&self, file: &str) -> PathBuf {
        let is_edited = self.files.iter().any(|edited| edited == file);
        if is_edited { self.copies.join(file) } else { self.root.join(file) }
    }
}

impl Edit {
    /// Adds the files that it changes to `texts`.
    fn apply(
        &self,
        root: &Path,
        microkernels: &[String],
        texts: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        let files: Vec<String> = match self.files {
            Files::These(files) => files.iter().map(|file| (*file).to_owned()).collect(),
            Files::X86Microkernels => microkernels.to_vec(),
        };
        let mut found = vec![0; self.changes.len()];
        for file in files {
            let before = match texts.get(&file) {
                Some(text) => text.clone(),
                None => fs::read_to_string(root.join(&file))?,
            };
            let mut text = before.clone();
            for ((find, put, _), found) in self.changes.iter().zip(&mut found) {
                let (changed, times) = replace(&text, find, put);
                text = changed;
                *found += times;
            }
            if text != before {
                texts.insert(file, text);
            }
        }
        for ((find, _, times), found) in self.changes.iter().zip(found) {
            if found != *times {
                let name = self.name;
                return Err(format!(
                    "this XNNPACK is another one than the edit '{name}' was written for: \
                     '{find}' occurs {found} times, not {times}"
                )
                .into());
            }
        }
        Ok(())
    }
}

/// `text` with `put` in the place of `find`, and how often.
fn replace(text: &str, find: &str, put: &str) -> (String, usize) {
    let Some((head, tail)) = find.split_once("{}") else {
        return (text.replace(find, put), text.matches(find).count());
    };
    let (mut changed, mut rest, mut times) = (String::new(), text, 0);
    while let Some((before, after)) = rest.split_once(head) {
        changed += before;
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let (name, behind) = after.split_at(length);
        match behind.strip_prefix(tail) {
            Some(behind) if !name.is_empty() => {
                changed += &put.replace("{}", name);
                (rest, times) = (behind, times + 1);
            }
            _ => {
                changed += head;
                rest = after;
            }
        }
    }
    (changed + rest, times)
}
