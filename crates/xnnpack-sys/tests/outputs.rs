//! Intermediate tensors lie in an output that nothing has written yet or that they are moved to, and take no memory of their own.

// An installed library does not place them.
#![cfg(xnnpack_sys_own)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use xnnpack_sys as xnn;

/// The most bytes that XNNPACK has allocated at once.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Bytes in front of each allocation, which hold its size.
const HEADER: usize = 64;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size + HEADER, HEADER).unwrap()
}

/// # Safety
/// The pointer comes from `allocate`.
unsafe fn size_of_allocation(pointer: *mut c_void) -> usize {
    // SAFETY: the header is in front of the allocation.
    unsafe { pointer.cast::<u8>().sub(HEADER).cast::<usize>().read() }
}

unsafe extern "C" fn allocate(_: *mut c_void, size: usize) -> *mut c_void {
    LARGEST.fetch_max(size, Ordering::Relaxed);
    // SAFETY: the size is not 0, and there is room for the header.
    unsafe {
        let start = alloc::alloc_zeroed(layout(size));
        start.cast::<usize>().write(size);
        start.add(HEADER).cast()
    }
}

unsafe extern "C" fn aligned_allocate(
    _: *mut c_void,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    assert!(alignment <= HEADER);
    // SAFETY: as above.
    unsafe { allocate(ptr::null_mut(), size) }
}

unsafe extern "C" fn reallocate(_: *mut c_void, old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `old` is of `allocate` or null; what is copied both have.
    unsafe {
        let new = allocate(ptr::null_mut(), size);
        if !old.is_null() {
            let len = size_of_allocation(old).min(size);
            new.cast::<u8>().copy_from_nonoverlapping(old.cast(), len);
        }
        deallocate(ptr::null_mut(), old);
        new
    }
}

unsafe extern "C" fn deallocate(_: *mut c_void, pointer: *mut c_void) {
    if !pointer.is_null() {
        // SAFETY: it is of `allocate`, which wrote the size before it.
        unsafe {
            let layout = layout(size_of_allocation(pointer));
            alloc::dealloc(pointer.cast::<u8>().sub(HEADER), layout);
        }
    }
}

/// Elements of most tensors, and of each row of the output.
const ELEMENTS: usize = 1 << 16;

/// Asserts that a call of XNNPACK's succeeds.
macro_rules! ok {
    ($call:expr) => {
        assert_eq!($call, xnn::xnn_status_success)
    };
}

/// A graph under construction. The ids of external tensors are 0, 1, ...
struct Graph(xnn::xnn_subgraph_t);

impl Graph {
    fn tensor(&self, rows: usize, elements: usize, id: u32, flags: u32) -> u32 {
        let mut value = xnn::XNN_INVALID_VALUE_ID;
        let (float, dims) = (xnn::xnn_datatype_fp32, [rows, elements]);
        // SAFETY: the graph is live, and the tensor has two dimensions and no data.
        ok!(unsafe {
            let (data, dims) = (ptr::null(), dims.as_ptr());
            xnn::xnn_define_tensor_value(self.0, float, 2, dims, data, id, flags, &raw mut value)
        });
        value
    }

    fn internal(&self) -> u32 {
        self.tensor(1, ELEMENTS, xnn::XNN_INVALID_VALUE_ID, 0)
    }

    fn unary(&self, operator: xnn::xnn_unary_operator, input: u32) -> u32 {
        let output = self.internal();
        // SAFETY: the graph is live, and has the tensors.
        ok!(unsafe { xnn::xnn_define_unary(self.0, operator, ptr::null(), input, output, 0) });
        output
    }

    fn binary(&self, operator: xnn::xnn_binary_operator, a: u32, b: u32, output: u32) -> u32 {
        // SAFETY: the graph is live, and has the tensors.
        ok!(unsafe { xnn::xnn_define_binary(self.0, operator, ptr::null(), a, b, output, 0) });
        output
    }
}

/// Runs what `build` makes of a row of 0.5, a column of ones, and an output of as many rows. It returns an intermediate tensor.
/// Returns the largest allocation, and the output.
fn run(rows: usize, build: impl FnOnce(&Graph, u32, u32, u32) -> u32) -> (usize, Vec<f32>) {
    LARGEST.store(0, Ordering::Relaxed);
    let mut input = vec![0.5_f32; ELEMENTS + 32];
    let mut stretched = vec![1.0_f32; rows + 32];
    let mut output = vec![f32::NAN; rows * ELEMENTS];
    // SAFETY: the calls follow xnnpack.h; tensors have the bytes that their shapes tell, and inputs more behind them.
    unsafe {
        let mut graph = ptr::null_mut();
        ok!(xnn::xnn_create_subgraph(3, 0, &raw mut graph));
        let built = Graph(graph);
        let x = built.tensor(1, ELEMENTS, 0, xnn::XNN_VALUE_FLAG_EXTERNAL_INPUT);
        let ones = built.tensor(rows, 1, 1, xnn::XNN_VALUE_FLAG_EXTERNAL_INPUT);
        let y = built.tensor(rows, ELEMENTS, 2, xnn::XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
        let internal = build(&built, x, ones, y);

        let mut runtime = ptr::null_mut();
        ok!(xnn::xnn_create_runtime_v2(graph, ptr::null_mut(), 0, &raw mut runtime));
        ok!(xnn::xnn_delete_subgraph(graph));
        ok!(xnn::xnn_reshape_runtime(runtime));
        let value =
            |id, data: &mut [f32]| xnn::xnn_external_value { id, data: data.as_mut_ptr().cast() };
        let mut values = [value(x, &mut input), value(ones, &mut stretched), value(y, &mut output)];
        let (count, pointer) = (values.len(), values.as_mut_ptr());
        ok!(xnn::xnn_setup_runtime_v2(runtime, count, pointer));
        ok!(xnn::xnn_invoke_runtime(runtime));
        // Values that are not external have no place that could be set.
        (*pointer).id = internal;
        assert_eq!(
            xnn::xnn_setup_runtime_v2(runtime, count, pointer),
            xnn::xnn_status_invalid_parameter
        );
        ok!(xnn::xnn_delete_runtime(runtime));
    }
    (LARGEST.load(Ordering::Relaxed), output)
}

/// `(|x| + x) * |x|`, three times, and as many rows of it.
fn stretch(graph: &Graph, x: u32, ones: u32, y: u32) -> u32 {
    let mut last = x;
    for _ in 0..3 {
        let abs = graph.unary(xnn::xnn_unary_abs, last);
        let sum = graph.binary(xnn::xnn_binary_add, abs, last, graph.internal());
        last = graph.binary(xnn::xnn_binary_multiply, sum, abs, graph.internal());
    }
    graph.binary(xnn::xnn_binary_multiply, last, ones, y);
    last
}

/// Two results, one behind the other.
fn concatenate(graph: &Graph, x: u32, _: u32, y: u32) -> u32 {
    let abs = graph.unary(xnn::xnn_unary_abs, x);
    let negated = graph.unary(xnn::xnn_unary_negate, x);
    // SAFETY: the graph is live, and has the tensors.
    ok!(unsafe { xnn::xnn_define_concatenate2(graph.0, 0, abs, negated, y, 0) });
    abs
}

#[test]
fn intermediate_values_lie_in_outputs() {
    let bytes = ELEMENTS * size_of::<f32>();
    let allocator = xnn::xnn_allocator {
        context: ptr::null_mut(),
        allocate: Some(allocate),
        reallocate: Some(reallocate),
        deallocate: Some(deallocate),
        aligned_allocate: Some(aligned_allocate),
        aligned_deallocate: Some(deallocate),
    };
    // SAFETY: the functions do what xnnpack.h asks for. XNNPACK copies their pointers.
    ok!(unsafe { xnn::xnn_initialize(&raw const allocator) });
    let expected = {
        let next = |x: f32| (x.abs() + x) * x.abs();
        next(next(next(0.5)))
    };
    // The input of the last node has to be in the workspace. Two tensors are in use at once, as sums and products are
    // computed in place, and none of them fits into an output of their size.
    for (rows, tensors) in [(4, 1), (1, 2)] {
        let (largest, output) = run(rows, stretch);
        assert!(output.iter().all(|&y| y == expected), "{rows} rows");
        assert_eq!(largest / bytes, tensors, "{rows} rows");
    }
    // Operands are computed where they are joined.
    let (largest, output) = run(2, concatenate);
    assert!(largest < bytes, "{largest} bytes for {bytes}");
    let (positive, negative) = output.split_at(ELEMENTS);
    assert!(positive.iter().all(|&y| y == 0.5) && negative.iter().all(|&y| y == -0.5));
}
