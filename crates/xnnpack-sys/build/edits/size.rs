//! Microkernels that would be part of every program, and that no operator runs.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[REPLACED];

const REPLACED: Edit = Edit {
    name: "microkernels that are always replaced",
    why: "XNNPACK's tables name microkernels that csrc/config replaces on every processor",
    files: Files::These(&["src/configs/dwconv-config.c", "src/configs/gemm-config.c"]),
    changes: &[(
        "#include \"xnnpack/microparams-init.h\"\n",
        "#include \"xnnpack/microparams-init.h\"\n#include \"config/replaced.h\"\n",
        2,
    )],
};
