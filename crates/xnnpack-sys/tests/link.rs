//! The library links, starts and computes.

use std::ffi::c_void;
use std::ptr;

use xnnpack_sys as xnn;

#[test]
fn library_initializes_and_runs_a_graph() {
    const LEN: usize = 8;
    let mut input = [0.0_f32; LEN + xnn::XNN_EXTRA_BYTES as usize / 4];
    for (index, value) in input.iter_mut().take(LEN).enumerate() {
        *value = index as f32 - 3.5;
    }
    let mut output = [f32::NAN; LEN + xnn::XNN_EXTRA_BYTES as usize / 4];

    // SAFETY: the calls follow xnnpack.h: every pointer is to a live local, the tensors have
    // one dimension of `LEN` elements and `XNN_EXTRA_BYTES` behind them.
    unsafe {
        assert_eq!(xnn::xnn_initialize(ptr::null()), xnn::xnn_status_success);
        let pool = xnn::pthreadpool_create(2);
        assert!(!pool.is_null());
        assert_eq!(xnn::pthreadpool_get_threads_count(pool), 2);

        let mut subgraph = ptr::null_mut();
        assert_eq!(xnn::xnn_create_subgraph(2, 0, &mut subgraph), xnn::xnn_status_success);
        for (id, flag) in
            [(0, xnn::XNN_VALUE_FLAG_EXTERNAL_INPUT), (1, xnn::XNN_VALUE_FLAG_EXTERNAL_OUTPUT)]
        {
            let mut assigned = xnn::XNN_INVALID_VALUE_ID;
            assert_eq!(
                xnn::xnn_define_tensor_value(
                    subgraph,
                    xnn::xnn_datatype_fp32,
                    1,
                    &LEN,
                    ptr::null(),
                    id,
                    flag,
                    &mut assigned,
                ),
                xnn::xnn_status_success
            );
            assert_eq!(assigned, id);
        }
        assert_eq!(
            xnn::xnn_define_unary(subgraph, xnn::xnn_unary_abs, ptr::null(), 0, 1, 0),
            xnn::xnn_status_success
        );

        let mut runtime = ptr::null_mut();
        assert_eq!(
            xnn::xnn_create_runtime_v2(subgraph, pool, 0, &mut runtime),
            xnn::xnn_status_success
        );
        assert_eq!(xnn::xnn_delete_subgraph(subgraph), xnn::xnn_status_success);
        let external = [
            xnn::xnn_external_value { id: 0, data: input.as_mut_ptr().cast::<c_void>() },
            xnn::xnn_external_value { id: 1, data: output.as_mut_ptr().cast::<c_void>() },
        ];
        assert_eq!(
            xnn::xnn_setup_runtime(runtime, external.len(), external.as_ptr()),
            xnn::xnn_status_success
        );
        assert_eq!(xnn::xnn_invoke_runtime(runtime), xnn::xnn_status_success);
        assert_eq!(xnn::xnn_delete_runtime(runtime), xnn::xnn_status_success);
        xnn::pthreadpool_destroy(pool);
    }

    for (x, y) in input.iter().zip(&output).take(LEN) {
        assert_eq!(x.abs(), *y);
    }
}
