//! Strings: hash tables, and kernels that move and compare strings. `tests/kernels.rs` of the
//! facade compares with LiteRT.

use xnn_interp::{Error, Interpreter, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::common::{Builder, Value, load, plain, run_op};

const STRINGS: super::common::Declared = (DType::String, None);

fn strings(shape: &[usize], strings: &[&str]) -> Value {
    let buf = TensorBuf::from_strings(shape, strings).expect("as many as the shape says");
    Value { buf, quantization: None }
}

#[track_caller]
fn expect(result: Result<TensorBuf, Error>, shape: &[usize], strings: &[&str]) {
    let buf = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(buf.shape(), shape);
    let found = buf.view().strings().expect("strings");
    assert_eq!(found, strings.iter().map(|string| string.as_bytes()).collect::<Vec<_>>());
}

#[test]
fn strings_are_moved() {
    let words = || strings(&[2, 2], &["a", "", "long", "a"]);
    expect(
        run_op(Op::Transpose, &[words(), plain(&[2], &[1i32, 0])], STRINGS),
        &[2, 2],
        &["a", "long", "", "a"],
    );
    let concatenation = Op::Concatenation(ConcatenationOptions::default());
    let joined = run_op(concatenation, &[words(), strings(&[1, 2], &["b", "long"])], STRINGS);
    expect(joined, &[3, 2], &["a", "", "long", "a", "b", "long"]);
    let filled = run_op(Op::Fill, &[plain(&[1], &[2i32]), strings(&[], &["x"])], STRINGS);
    expect(filled, &[2], &["x", "x"]);
    let gather = Op::GatherNd;
    let picked = run_op(gather, &[words(), plain(&[1, 2], &[1i32, 0])], STRINGS);
    expect(picked, &[1], &["long"]);
    expect(run_op(Op::ReverseV2, &[strings(&[0], &[]), plain(&[1], &[0i32])], STRINGS), &[0], &[]);
}

#[test]
fn strings_are_compared() {
    let equal = run_op(
        Op::Equal,
        &[strings(&[3], &["a", "b", ""]), strings(&[1], &["b"])],
        (DType::Bool, None),
    );
    assert_eq!(equal.unwrap().view().bytes, [0, 1, 0]);
    let error =
        run_op(Op::Less, &[strings(&[1], &["a"]), strings(&[1], &["b"])], (DType::Bool, None));
    assert!(error.unwrap_err().to_string().contains("string"), "order is not defined");
}

#[test]
fn invalid_strings_are_refused() {
    for bytes in [vec![], vec![1, 0, 0, 0], vec![0; 12], vec![0xff; 16]] {
        let mut b = Builder::new();
        let words = b.tensor(DType::String, &[1]);
        b.graph.tensors[words].data = Some(bytes.into());
        let output = b.tensor(DType::String, &[1]);
        b.graph.outputs.push(output);
        b.op(Op::ReverseV2, &[words, words], &[output]);
        let axis = b.constant(&[1], &[0i32]);
        b.graph.operators[0].inputs[1] = Some(axis);
        let error = load(&b.model()).and_then(|mut interpreter| interpreter.run()).unwrap_err();
        assert!(error.to_string().contains("string"), "{error}");
    }
    assert!(TensorBuf::from_strings(&[2], &["a"]).is_none());
    assert!(TensorBuf::from_bytes(DType::String, &[1], &[1, 0, 0, 0]).is_none());
    // An input that has not been set has no strings.
    let mut b = Builder::new();
    let words = b.input(DType::String, &[2]);
    let axis = b.constant(&[1], &[0i32]);
    let output = b.tensor(DType::String, &[2]);
    b.graph.outputs.push(output);
    b.op(Op::ReverseV2, &[words, axis], &[output]);
    let mut interpreter = load(&b.model()).unwrap();
    assert!(
        interpreter.run().unwrap_err().to_string().contains("number of strings does not match")
    );
    interpreter.set_input(0, strings(&[2], &["a", "b"]).buf).unwrap();
    interpreter.run().unwrap();
    assert_eq!(interpreter.output(0).unwrap().strings().unwrap(), [b"b", b"a"]);
}

/// A model that looks up its input in a table of these keys and values.
fn table(keys: Value, values: Value, default: Value) -> Interpreter {
    let mut b = Builder::new();
    let (key_type, value_type) = (keys.buf.dtype(), values.buf.dtype());
    let mut constant = |value: Value| {
        let id = b.tensor(value.buf.dtype(), value.buf.shape());
        b.graph.tensors[id].data = Some(bytes::Bytes::copy_from_slice(value.buf.view().bytes));
        id
    };
    let (keys, values, default) = (constant(keys), constant(values), constant(default));
    let wanted = b.input(key_type, &[3]);
    let handle = b.tensor(DType::Resource, &[1]);
    let found = b.tensor(value_type, &[3]);
    b.graph.outputs.push(found);
    b.op(Op::Hashtable(HashtableOptions::default()), &[], &[handle]);
    b.op(Op::HashtableImport, &[handle, keys, values], &[]);
    b.op(Op::HashtableFind, &[handle, wanted, default], &[found]);
    load(&b.model()).unwrap()
}

#[test]
fn tables_of_strings() {
    let ints = |values: &[i64]| plain(&[values.len()], values);
    let words = || strings(&[3], &["a", "b", "a"]);
    let mut by_word = table(words(), ints(&[1, 2, 3]), ints(&[-1]));
    by_word.set_input(0, strings(&[3], &["b", "c", "a"]).buf).unwrap();
    by_word.run().unwrap();
    assert_eq!(by_word.output(0).unwrap().as_slice::<i64>().unwrap(), [2, -1, 1]);
    let mut by_number = table(ints(&[1, 2, 3]), words(), strings(&[1], &["none"]));
    for (wanted, found) in [([3i64, 1, 4], ["a", "a", "none"]), ([2, 2, 9], ["b", "b", "none"])] {
        by_number.set_input(0, ints(&wanted).buf).unwrap();
        by_number.run().unwrap();
        let strings = by_number.output(0).unwrap().strings().unwrap();
        assert_eq!(strings, found.map(str::as_bytes));
    }
}

#[test]
fn rows_are_found_by_their_keys() {
    let look = |keys: &[i32], rows: usize| {
        let values: Vec<f32> = (0..rows * 2).map(|i| i as f32).collect();
        let mut b = Builder::new();
        let wanted = b.constant(&[3], &[5i32, 2, -1]);
        let keys = b.constant(&[keys.len()], keys);
        let values = b.constant(&[rows, 2], &values);
        let (found, hits) = (b.tensor(DType::F32, &[3, 2]), b.tensor(DType::U8, &[3]));
        b.graph.outputs = vec![found, hits];
        b.op(Op::HashtableLookup, &[wanted, keys, values], &[found, hits]);
        let mut interpreter = load(&b.model())?;
        interpreter.run()?;
        let output = |at| interpreter.output(at).map(|output| output.to_buf());
        Ok::<_, Error>([output(0)?, output(1)?])
    };
    let [found, hits] = look(&[-1, 5], 2).unwrap();
    assert_eq!(found.view().as_slice::<f32>().unwrap(), [2., 3., 0., 0., 0., 1.]);
    assert_eq!(hits.view().bytes, [1, 0, 1]);
    assert!(look(&[-1, 5], 3).unwrap_err().to_string().contains("2 keys, but 3 rows"));
}
