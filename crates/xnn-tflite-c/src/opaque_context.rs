//! Contexts and nodes of kernels and delegates: the second part of `c_api_opaque.h`.
//!
//! Kernels and delegates of callers do not run in this library, so no caller gets a context or a
//! node. The functions exist, because libraries of kernels link to them. They return an error, null
//! or 0.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use xnn_tflite_abi::{ERROR, TfLiteDelegate, TfLiteIntArray, TfLiteStatus, TfLiteTensor};

use crate::opaque::TfLiteOpaqueTensorBuilder;
use crate::operator::TfLiteOperator;

/// A context, which this library never makes.
#[derive(Debug)]
pub struct TfLiteOpaqueContext(());

/// A node, which this library never makes.
#[derive(Debug)]
pub struct TfLiteOpaqueNode(());

type Context = *mut TfLiteOpaqueContext;
type Node = *const TfLiteOpaqueNode;
type Lists = *mut *const c_int;

macro_rules! refused {
    ($($result:ty = $value:expr => { $($name:ident($($argument:ty),*);)* })*) => {$($(
        /// Never has a context or node to work with.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $argument),*) -> $result {
            $value
        }
    )*)*};
}

refused! {
    TfLiteStatus = ERROR => {
        TfLiteOpaqueNodeGetCustomInitialData(Node, *mut *const c_void, *mut c_int);
        TfLiteOpaqueNodeInputs(Node, Lists, *mut c_int);
        TfLiteOpaqueNodeOutputs(Node, Lists, *mut c_int);
        TfLiteOpaqueNodeSetTemporaries(Node, *const c_int, c_int);
        TfLiteOpaqueNodeTemporaries(Node, Lists, *mut c_int);
        TfLiteOpaqueContextGetExecutionPlan(Context, *mut *mut TfLiteIntArray);
        TfLiteOpaqueContextGetExternalContext(Context, *mut *mut c_void, c_int);
        TfLiteOpaqueContextGetNodeAndRegistration(Context, c_int, *mut Node, *mut *mut TfLiteOperator);
        TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(
            Context, *mut TfLiteOperator, *const TfLiteIntArray, *mut TfLiteDelegate
        );
        TfLiteOpaqueContextGetInputs(Context, Lists, *mut c_int);
        TfLiteOpaqueContextGetOutputs(Context, Lists, *mut c_int);
        TfLiteOpaqueContextGetVariables(Context, Lists, *mut c_int);
        TfLiteOpaqueContextResizeTensor(Context, *mut TfLiteTensor, *mut TfLiteIntArray);
        TfLiteOpaqueContextAcquireSubgraphContext(Context, c_int, *mut Context);
        TfLiteOpaqueContextReleaseSubgraphContext(Context, c_int);
        TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(Context, c_int);
        TfLiteOpaqueContextGetNodeInitDataMmapInfo(Context, Node, *mut c_int, *mut i64, *mut i64);
        TfLiteOpaqueContextAddTensor(Context, *mut TfLiteOpaqueTensorBuilder, *mut c_int);
        TfLiteOpaqueContextGetSizeOfType(Context, c_int, *mut usize);
        TfLiteOpaqueContextGetMetadata(Context, *const c_char, *mut *const c_char, *mut usize);
    }
    c_int = 0 => {
        TfLiteOpaqueNodeNumberOfInputs(Node);
        TfLiteOpaqueNodeNumberOfOutputs(Node);
    }
    c_int = -1 => {
        TfLiteOpaqueNodeGetInputTensorIndex(Node, c_int);
        TfLiteOpaqueNodeGetOutputTensorIndex(Node, c_int);
    }
    usize = 0 => {
        TfLiteOpaqueContextGetNumNodes(Context);
        TfLiteOpaqueContextGetNumTensors(Context);
    }
    *const c_char = ptr::null() => {
        TfLiteOpaqueContextGetName(Context);
    }
    *const TfLiteTensor = ptr::null() => {
        TfLiteOpaqueNodeGetInput(Context, Node, c_int);
    }
    *mut TfLiteTensor = ptr::null_mut() => {
        TfLiteOpaqueNodeGetOutput(Context, Node, c_int);
        TfLiteOpaqueContextGetOpaqueTensor(Context, c_int);
    }
    *mut c_void = ptr::null_mut() => {
        TfLiteOpaqueNodeGetUserData(Node);
        TfLiteOpaqueNodeGetBuiltinData(Node);
    }
    () = () => {
        TfLiteOpaqueContextReportError(Context, *const c_char);
        TfLiteOpaqueContextReportErrorVa(Context, *const c_char, *mut c_void);
    }
}
