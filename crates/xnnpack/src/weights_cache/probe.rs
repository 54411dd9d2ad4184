//! Probes the size of a node's packed weights without packing them.

use std::ffi::c_void;
use std::ptr;

use xnnpack_sys as sys;

use crate::subgraph::Subgraph;
use crate::subgraph::raw::RawSubgraph;
use crate::value::Shape;
use crate::workspace::Workspace;

/// Seed and size that XNNPACK requested.
#[derive(Default)]
struct Probe {
    seed: u32,
    size: Option<usize>,
}

/// Returns the number of bytes that XNNPACK reserves for the weights of a node that it packs with
/// `seed`. The operator is created with an empty cache without capacity, so that creation fails
/// before weights are packed. `None` if XNNPACK does not reserve memory, or packs with another
/// seed.
///
/// The workspace must be locked.
pub(crate) fn packed_size(
    subgraph: &Subgraph,
    shapes: &[Option<Shape>],
    node: usize,
    seed: u32,
    flags: u32,
    workspace: &Workspace,
) -> Option<usize> {
    let graph = RawSubgraph::of_node(subgraph, shapes, subgraph.nodes().get(node)?).ok()?;
    let mut probe = Probe::default();
    let mut provider = sys::xnn_weights_cache_provider {
        context: (&raw mut probe).cast(),
        look_up: Some(look_up),
        reserve_space: Some(reserve_space),
        look_up_or_insert: Some(look_up_or_insert),
        is_finalized: Some(is_finalized),
        offset_to_addr: Some(offset_to_addr),
        delete_cache: None,
    };
    let mut runtime = ptr::null_mut();
    // SAFETY: all handles are live during the call, the workspace is locked, and the functions
    // expect this context.
    unsafe {
        let status = sys::xnn_create_runtime_v4(
            graph.raw(),
            &raw mut provider,
            workspace.raw(),
            ptr::null_mut(),
            flags,
            &raw mut runtime,
        );
        if status == sys::xnn_status_success {
            sys::xnn_delete_runtime(runtime);
        }
    }
    probe.size.filter(|_| probe.seed == seed)
}

/// Offset by which XNNPACK recognizes a missing entry.
const NOT_FOUND: usize = usize::MAX;

unsafe extern "C" fn look_up(
    context: *mut c_void,
    key: *const sys::xnn_weights_cache_look_up_key,
) -> usize {
    // SAFETY: XNNPACK passes the context that it was given, which is not accessed otherwise during
    // the call, and a valid key.
    unsafe { (*context.cast::<Probe>()).seed = (*key).seed };
    NOT_FOUND
}

unsafe extern "C" fn reserve_space(context: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as in `look_up`.
    unsafe { (*context.cast::<Probe>()).size = Some(size) };
    ptr::null_mut()
}

unsafe extern "C" fn look_up_or_insert(
    _context: *mut c_void,
    _key: *const sys::xnn_weights_cache_look_up_key,
    _packed: *mut c_void,
    _size: usize,
) -> usize {
    NOT_FOUND
}

unsafe extern "C" fn is_finalized(_context: *mut c_void) -> bool {
    false
}

unsafe extern "C" fn offset_to_addr(_context: *mut c_void, _offset: usize) -> *mut c_void {
    ptr::null_mut()
}
