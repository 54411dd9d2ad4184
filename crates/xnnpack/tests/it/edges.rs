//! Weights whose last byte is the last readable one, as at the end of a mapped file.

use std::slice;

use bytes::Bytes;
use xnnpack::{
    Conv2d, Datatype, Element, Flags, FullyConnected, OutputRange, Quantization, Role, StaticData,
    TensorSpec, Unary, UnaryOp, ValueId,
};

use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, conv, f32, qint8};

/// Mapped pages, of which the last one is not readable.
struct Guarded {
    start: *mut u8,
    bytes: usize,
    len: usize,
}

const PAGE: usize = 4096;

// SAFETY: only read after creation.
unsafe impl Send for Guarded {}
// SAFETY: only read after creation.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn of<T: Element>(data: &[T]) -> Self {
        let bytes = size_of_val(data);
        let len = bytes.next_multiple_of(PAGE) + PAGE;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the pages are new, and the last one is made inaccessible before it is used; the
        // copied bytes end where it begins.
        unsafe {
            let start: *mut u8 = libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0).cast();
            assert_ne!(start.cast(), libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.add(len - PAGE).cast(), PAGE, libc::PROT_NONE), 0);
            start.add(len - PAGE - bytes).copy_from(data.as_ptr().cast(), bytes);
            Self { start, bytes, len }
        }
    }
}

impl AsRef<[u8]> for Guarded {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the bytes that were copied there.
        unsafe { slice::from_raw_parts(self.start.add(self.len - PAGE - self.bytes), self.bytes) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the pages that `of` has mapped.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

fn at_the_end<T: Element>(fixture: &mut Fixture, spec: TensorSpec, data: &[T]) -> ValueId {
    let data = StaticData::new(Bytes::from_owner(Guarded::of(data)));
    fixture.graph.define_tensor(spec.role(Role::Static(data))).unwrap()
}

/// A tensor with scale 1 for each of `channels` along the first axis.
fn per_channel(dims: &[usize], channels: usize) -> TensorSpec {
    let scales = vec![1.0; channels].into();
    let quantization = Quantization::PerChannel { zero_point: 0, axis: 0, scales };
    TensorSpec::new(Datatype::Qcint8, dims).quantized(quantization)
}

/// Outputs and inputs of layers: whole tiles of XNNPACK's microkernels, and parts of tiles.
const LAYERS: [[usize; 2]; 8] =
    [[1, 1], [7, 3], [8, 12], [16, 66], [32, 36], [33, 34], [40, 64], [16, 3]];

#[test]
fn fully_connected() {
    for [n, k] in LAYERS {
        let dense = |input, filter, output| {
            let (bias, output_range, flags) = (None, OutputRange::default(), Flags::NONE);
            FullyConnected { output_range, input, filter, bias, output, flags }
        };
        let sum = k as i8;

        let mut fixture = Fixture::new();
        let input = fixture.input(qint8(&[2, k], 0, 1.0), &vec![1i8; 2 * k]);
        let filter = at_the_end(&mut fixture, qint8(&[n, k], 0, 1.0), &vec![1i8; n * k]);
        let output = fixture.output(any_qint8(0, 1.0));
        let result = fixture.node(dense(input, filter, output)).run::<i8>();
        assert_eq!(result, vec![sum; 2 * n], "qint8 {n} x {k}");

        let mut fixture = Fixture::new();
        let input = fixture.input(qint8(&[2, k], 0, 1.0), &vec![1i8; 2 * k]);
        let filter = at_the_end(&mut fixture, per_channel(&[n, k], n), &vec![1i8; n * k]);
        let output = fixture.output(any_qint8(0, 1.0));
        let result = fixture.node(dense(input, filter, output)).run::<i8>();
        assert_eq!(result, vec![sum; 2 * n], "qcint8 {n} x {k}");

        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[2, k]), &vec![1.0f32; 2 * k]);
        let rows = Quantization::Dynamic { nonbatch_dims: 1 };
        let rows = TensorSpec::inferred(Datatype::Qdint8).quantized(rows);
        let rows = fixture.internal(rows);
        fixture.graph.define(Unary { op: UnaryOp::Convert, input, output: rows }).unwrap();
        let filter = at_the_end(&mut fixture, per_channel(&[n, k], n), &vec![1i8; n * k]);
        let output = fixture.output(any_f32());
        let result = fixture.node(dense(rows, filter, output)).run::<f32>();
        assert_close(&result, &vec![f32::from(sum); 2 * n], 0.5);

        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[2, k]), &vec![1.0f32; 2 * k]);
        let filter = at_the_end(&mut fixture, f32(&[n, k]), &vec![1.0f32; n * k]);
        let output = fixture.output(any_f32());
        let result = fixture.node(dense(input, filter, output)).run::<f32>();
        assert_close(&result, &vec![f32::from(sum); 2 * n], 0.0);
    }
}

#[test]
fn convolutions() {
    for [n, k] in LAYERS {
        for kernel in [1, 3] {
            let dims = [n, kernel, kernel, k];
            let weights = dims.iter().product();
            let node = |input, filter, output| Conv2d {
                kernel: [kernel as u32; 2],
                group_input_channels: k,
                group_output_channels: n,
                ..conv(input, filter, None, output)
            };
            let sum = kernel * kernel * k;

            let mut fixture = Fixture::new();
            let input = fixture.input(qint8(&[1, 3, 3, k], 0, 1.0), &vec![1i8; 9 * k]);
            let filter = at_the_end(&mut fixture, per_channel(&dims, n), &vec![1i8; weights]);
            let output = fixture.output(any_qint8(0, 10.0));
            let result = fixture.node(node(input, filter, output)).run::<i8>();
            let expected = (sum as f32 / 10.0).round_ties_even() as i8;
            assert!(result.iter().all(|&result| result == expected), "qcint8 {dims:?}");

            let mut fixture = Fixture::new();
            let input = fixture.input(f32(&[1, 3, 3, k]), &vec![1.0f32; 9 * k]);
            let filter = at_the_end(&mut fixture, f32(&dims), &vec![1.0f32; weights]);
            let output = fixture.output(any_f32());
            let result = fixture.node(node(input, filter, output)).run::<f32>();
            assert_close(&result, &vec![sum as f32; result.len()], 0.0);
        }
    }
}
