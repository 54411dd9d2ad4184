//! Functions of the fake interpreter's context.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use super::graph::{Inner, bytes, zeroed};
use crate::abi::{
    ERROR, OK, PaddedRegistration, TfLiteContext, TfLiteDelegate, TfLiteDelegateParams,
    TfLiteIntArray, TfLiteNode, TfLiteRegistration, TfLiteStatus, TfLiteTensor, ints,
};

/// # Safety
/// `context` belongs to a live fake.
unsafe fn inner<'a>(context: *mut TfLiteContext) -> &'a mut Inner {
    // SAFETY: guaranteed by the caller.
    unsafe { &mut *(*context).implementation.cast::<Inner>() }
}

pub(super) unsafe extern "C" fn get_execution_plan(
    context: *mut TfLiteContext,
    plan: *mut *mut TfLiteIntArray,
) -> TfLiteStatus {
    // SAFETY: called with the fake's context.
    unsafe {
        let inner = inner(context);
        let elements = inner.plan.clone();
        *plan = inner.array(&elements).cast_mut();
    }
    OK
}

pub(super) unsafe extern "C" fn get_node_and_registration(
    context: *mut TfLiteContext,
    index: c_int,
    node: *mut *mut TfLiteNode,
    registration: *mut *mut TfLiteRegistration,
) -> TfLiteStatus {
    // SAFETY: called with the fake's context.
    unsafe {
        let inner = inner(context);
        let Some(found) = inner.nodes.get_mut(index as usize) else { return ERROR };
        *node = &raw mut **found;
        *registration = &raw mut *inner.registrations[index as usize];
    }
    OK
}

pub(super) unsafe extern "C" fn preview(
    context: *mut TfLiteContext,
    nodes: *const TfLiteIntArray,
    subsets: *mut *mut TfLiteDelegateParams,
    count: *mut c_int,
) -> TfLiteStatus {
    // SAFETY: called with the fake's context.
    unsafe {
        let inner = inner(context);
        let claimed = ints(nodes).iter().copied().collect();
        let all = inner.subsets(&claimed).into_iter().filter(|(kind, _)| *kind);
        inner.handed_out = all.map(|(_, subset)| inner.params(&subset, ptr::null_mut())).collect();
        *subsets = inner.handed_out.as_mut_ptr();
        *count = inner.handed_out.len() as c_int;
    }
    OK
}

pub(super) unsafe extern "C" fn replace(
    context: *mut TfLiteContext,
    registration: PaddedRegistration,
    nodes: *const TfLiteIntArray,
    delegate: *mut TfLiteDelegate,
) -> TfLiteStatus {
    // SAFETY: called with the fake's context.
    unsafe {
        assert_eq!(registration.spare, [0; 8]);
        let claimed = ints(nodes).iter().copied().collect();
        let mut plan = Vec::new();
        for (kind, subset) in inner(context).subsets(&claimed) {
            if !kind {
                plan.extend(subset);
                continue;
            }
            let params = inner(context).params(&subset, delegate);
            let data =
                registration.registration.init.unwrap()(context, (&raw const params).cast(), 0);
            let inner = inner(context);
            let mut node: TfLiteNode = zeroed();
            node.inputs = params.input_tensors;
            node.outputs = params.output_tensors;
            node.user_data = data;
            inner.nodes.push(Box::new(node));
            inner.registrations.push(Box::new(ptr::read(&registration.registration)));
            inner.replacements += 1;
            plan.push((inner.nodes.len() - 1) as c_int);
        }
        inner(context).plan = plan;
    }
    OK
}

pub(super) unsafe extern "C" fn resize_tensor(
    context: *mut TfLiteContext,
    tensor: *mut TfLiteTensor,
    dims: *mut TfLiteIntArray,
) -> TfLiteStatus {
    unsafe extern "C" {
        fn free(pointer: *mut c_void);
    }
    // SAFETY: called with the fake's context and an array from `malloc`.
    unsafe {
        let elements = ints(dims).to_vec();
        free(dims.cast());
        (*tensor).dims = inner(context).array(&elements);
        (*tensor).bytes = bytes((*tensor).element_type, &elements);
    }
    OK
}

pub(super) unsafe extern "C" fn report_error(
    context: *mut TfLiteContext,
    format: *const c_char,
    argument: *const c_char,
) {
    // SAFETY: called with the fake's context and two strings.
    unsafe {
        let text = |string| CStr::from_ptr(string).to_str().unwrap();
        inner(context).messages.push(text(format).replace("%s", text(argument)));
    }
}
