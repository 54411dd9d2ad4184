//! Runs TFLite and Circle models on reference kernels.
//!
//! An [`Interpreter`] executes a subgraph operator by operator. Its kernels
//! are written for clarity and exactness: integers come out bit for bit as
//! from TFLite's reference kernels, floats within rounding. A [`Delegate`] may
//! claim sets of operators and run them in its own way; what it leaves stays
//! with the kernels.
//!
//! Everything that can be refused is refused by [`Interpreter::new`]: every
//! operator has prepared its kernel when the model is loaded.

#![deny(unsafe_code)]

mod arena;
mod call;
mod constants;
mod control;
mod delegate;
mod error;
mod fixed;
mod frame;
mod interpreter;
mod kernels;
mod machine;
mod node;
mod observe;
mod philox;
mod program;
mod quant;
mod resources;
mod shapes;
mod storage;
mod strings;
mod tensor;
mod variables;

pub use constants::{fold_constants, fold_constants_again};
pub use delegate::{Claim, CompiledPartition, Delegate, Partition, PartitionSession};
pub use error::{Error, ErrorKind};
pub use interpreter::{ArenaUse, CancelFlag, Entry, InterpOptions, Interpreter, check_size};
pub use observe::Executed;
pub use program::infer_reachable;
pub use storage::{Output, PaddedRef, TensorBuf};
pub use tensor::{Complex, Element, TensorView, TensorViewMut, WideComplex};

/// Names of the builtin operators and of the custom ones that have a kernel.
pub use kernels::supported_operators;

/// Inputs and outputs, dimensions, and integers of arguments up to which a step
/// allocates nothing.
const INLINE: usize = 8;

/// Sizes, one for each dimension or input.
type Dims = smallvec::SmallVec<[usize; INLINE]>;
