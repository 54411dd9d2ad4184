//! Runs TFLite and Circle models on reference kernels.
//!
//! An [`Interpreter`] executes a subgraph operator by operator. Its kernels favor clarity and
//! exactness: integer results are identical to those of TFLite's reference kernels, float results
//! equal within rounding. A [`Delegate`] may claim sets of operators and run them itself; the
//! kernels run the others.
//!
//! [`Interpreter::new`] reports all errors that can be found before a run: it prepares the kernel
//! of every operator.

#![deny(unsafe_code)]

mod arena;
mod arena_use;
mod call;
mod cancel;
mod constants;
mod control;
mod delegate;
mod dims;
mod error;
mod execution_plan;
mod fixed;
mod fold;
mod frame;
mod interpreter;
mod kernels;
mod machine;
mod observe;
mod operator;
mod options;
mod philox;
mod quant;
mod resources;
mod scratch;
mod shared_state;
mod storage;
mod strings;
mod tensor;
mod variables;

pub use arena_use::ArenaUse;
pub use cancel::CancelFlag;
pub use delegate::{
    Claim, CompiledClaim, CompiledPartition, Delegate, OperatorSet, PartitionSession, SharedValues,
};
pub use error::{Error, ErrorKind};
pub use execution_plan::infer_reachable;
pub use fold::{fold_constants, fold_constants_again};
pub use interpreter::{Interpreter, check_size};
pub use observe::Executed;
pub use options::{Entry, InterpOptions};
pub use storage::{Output, PaddedRef, TensorBuf};
pub use tensor::{Complex, Element, TensorView, TensorViewMut, WideComplex};

/// Names of the builtin operators and of the custom ones that have a kernel.
pub use kernels::supported_operators;
