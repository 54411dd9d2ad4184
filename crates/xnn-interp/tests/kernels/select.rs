//! Selection by conditions and by size.

use xnn_interp::{Element, TensorBuf};
use xnn_model::{DType, Op};

use super::common::{Builder, Value, bools, expect, load, plain, run_op};

/// Elements selected from two tensors, one by one. Shapes have the rank of the result.
fn chosen<T: Copy>(
    (condition, by): (&[u8], [usize; 3]),
    (x, of_x): (&[T], [usize; 3]),
    (y, of_y): (&[T], [usize; 3]),
    shape: [usize; 3],
) -> Vec<T> {
    let at = |dims: [usize; 3], index: [usize; 3]| {
        dims.iter().zip(index).fold(0, |at, (&dim, i)| at * dim + if dim == 1 { 0 } else { i })
    };
    let mut elements = vec![];
    for i in 0..shape[0] {
        for j in 0..shape[1] {
            for k in 0..shape[2] {
                let index = [i, j, k];
                let holds = condition[at(by, index)] != 0;
                elements.push(if holds { x[at(of_x, index)] } else { y[at(of_y, index)] });
            }
        }
    }
    elements
}

fn check<T: Element + std::fmt::Debug>(number: impl Fn(u8) -> T) {
    let count = |dims: [usize; 3]| dims.iter().product::<usize>();
    let shape = [2, 3, 4];
    for by in [[2, 3, 4], [1, 1, 1], [1, 3, 4], [2, 1, 1], [2, 1, 4]] {
        for of_x in [[2, 3, 4], [1, 3, 1]] {
            for of_y in [[2, 3, 4], [1, 1, 1], [2, 3, 1]] {
                let stretched = (0..3).any(|d| by[d].max(of_x[d]).max(of_y[d]) != shape[d]);
                if stretched {
                    continue;
                }
                let condition: Vec<u8> = (0..count(by)).map(|i| u8::from(i % 3 == 1)).collect();
                let numbers = |from: u8, dims| -> Vec<T> {
                    (from..).take(count(dims)).map(&number).collect()
                };
                let (x, y) = (numbers(1, of_x), numbers(100, of_y));
                let inputs = [bools(&by, &condition), plain(&of_x, &x), plain(&of_y, &y)];
                let dtype = T::DTYPES[0];
                let expected = chosen((&condition, by), (&x, of_x), (&y, of_y), shape);
                expect(run_op(Op::SelectV2, &inputs, (dtype, None)), &shape, &expected);
            }
        }
    }
}

#[test]
fn selections_broadcast_elements_of_every_width() {
    check(|i| i);
    check(i16::from);
    check(f32::from);
    check(i64::from);
}

/// The `k` largest elements of each row and their positions.
fn top_k<T: Element>(x: &Value, k: i32) -> (Vec<T>, Vec<i32>) {
    let mut b = Builder::new();
    let input = b.input(x.buf.dtype(), x.buf.shape());
    let k = b.constant(&[], &[k]);
    let outputs = [x.buf.dtype(), DType::I32].map(|dtype| b.tensor(dtype, &[]));
    for id in outputs {
        b.graph.tensors[id].shape = None;
    }
    b.graph.outputs.extend(outputs);
    b.op(Op::TopkV2, &[input, k], &outputs);
    let mut interpreter = load(&b.model()).unwrap();
    interpreter.set_input(0, x.buf.clone()).unwrap();
    interpreter.run().unwrap();
    let output = |position| -> TensorBuf { interpreter.output(position).unwrap().to_buf() };
    let (values, indices) = (output(0), output(1));
    (
        values.view().as_slice::<T>().unwrap().to_vec(),
        indices.view().as_slice::<i32>().unwrap().to_vec(),
    )
}

#[test]
fn the_first_of_equal_elements_is_the_largest() {
    let rows: [Vec<f32>; 3] = [
        (0..50u16).map(|i| f32::from(i * 7 % 5)).collect(),
        vec![1.0; 50],
        (0..50u16).map(|i| if i % 4 == 0 { f32::NAN } else { f32::from(i % 3) }).collect(),
    ];
    let input = plain(&[3, 50], &rows.concat());
    for k in [0, 1, 7, 49, 50] {
        let (values, indices) = top_k::<f32>(&input, k);
        let mut expected = vec![];
        for row in &rows {
            let mut order: Vec<usize> = (0..row.len()).collect();
            let key = |i: &usize| if row[*i].is_nan() { f32::INFINITY } else { -row[*i] };
            order.sort_by(|a, b| key(a).total_cmp(&key(b)));
            expected.extend(order.into_iter().take(usize::try_from(k).unwrap()).map(|i| i as i32));
        }
        assert_eq!(indices, expected, "{k}");
        let at = |(i, &index): (usize, &i32)| rows[i / k.max(1) as usize][index as usize];
        let found = indices.iter().enumerate().map(at);
        assert!(found.zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()), "{k}");
    }
    let bytes = plain(&[1, 4], &[3i8, -3, 3, 9]);
    assert_eq!(top_k::<i8>(&bytes, 3), (vec![9, 3, 3], vec![3, 0, 2]));
}
