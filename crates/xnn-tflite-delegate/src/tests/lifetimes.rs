//! Lifetimes and concurrency of delegates and interpreters.

use std::ffi::c_int;
use std::time::{Duration, SystemTime};

use xnn_file::MappedFile;

use super::{
    ABS, ADD, Chain, DEQUANTIZE, FLOAT16, FULLY_CONNECTED, FULLY_CONNECTED_PARAMS, Owned,
    add_params,
};
use crate::abi::{MMAP_RO, OK};
use crate::fake::{FLOAT32, Fake};

#[test]
fn a_delegate_may_be_destroyed_before_its_interpreter() {
    let chain = Chain::new();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    drop(delegate);
    chain.check(0);
}

#[test]
fn a_delegate_serves_several_interpreters() {
    let delegate = Owned::with(&[("num_threads", "2")]);
    let chains = [Chain::new(), Chain::new()];
    for chain in &chains {
        assert_eq!(chain.fake.apply(delegate.0), OK);
    }
    drop(delegate);
    chains.iter().for_each(|chain| chain.check(0));
}

/// An interpreter of a layer whose weights are in `model`, a mapped file.
fn layer_of(model: &[u8], rows: c_int) -> (Fake, c_int, c_int) {
    let fake = Fake::new();
    let [input, output] = [[rows, 2], [rows, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
    let weights = fake.tensor(FLOAT32, &[3, 2]);
    let tensor = fake.tensor_mut(weights);
    (tensor.data, tensor.allocation_type) = (model.as_ptr().cast_mut().cast(), MMAP_RO);
    fake.node(FULLY_CONNECTED, Some(FULLY_CONNECTED_PARAMS), &[input, weights], &[output]);
    fake.set_outputs(&[output]);
    (fake, input, output)
}

fn run((fake, input, output): &(Fake, c_int, c_int)) -> Vec<f32> {
    assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
    fake.write(*input, &[1.0, 10.0]);
    assert_eq!(fake.invoke(), OK, "{}", fake.messages());
    fake.read(*output)
}

#[test]
fn interpreters_of_one_model_share_its_packed_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let bytes = |weights: [f32; 6]| weights.map(f32::to_le_bytes).concat();
    std::fs::write(&path, bytes([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
    let interpreter = || {
        let file = MappedFile::open(&path).unwrap();
        let delegate = Owned::new();
        let layer = layer_of(&file.bytes(), 1);
        assert_eq!(layer.0.apply(delegate.0), OK, "{}", layer.0.messages());
        (layer, file)
    };
    let packed = |layer: &(Fake, c_int, c_int)| {
        let entries = layer.0.program().packed().unwrap().entries;
        assert_eq!(entries.len(), 1);
        entries[0].data.as_ptr()
    };
    let ((first, a), (second, b)) = (interpreter(), interpreter());
    assert_ne!(a.bytes().as_ptr(), b.bytes().as_ptr());
    assert_eq!(packed(&first), packed(&second));
    // The interpreter that packed the weights may be destroyed.
    drop((first, a));
    assert_eq!(run(&second), [21.0, 43.0, 65.0]);
    let (third, _c) = interpreter();
    assert_eq!(packed(&third), packed(&second));
    // A retrained model at the same path is another model, even in the same file.
    std::fs::write(&path, bytes([2.0, 0.0, 0.0, 2.0, 1.0, 1.0])).unwrap();
    let later = SystemTime::now() + Duration::from_secs(10);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    let (retrained, _d) = interpreter();
    assert_ne!(packed(&retrained), packed(&second));
    assert_eq!(run(&retrained), [2.0, 20.0, 11.0]);
}

#[test]
fn models_in_the_same_memory_are_shared() {
    let weights = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat();
    let copy = weights.clone();
    let delegate = Owned::new();
    let interpreters = [&weights, &weights, &copy].map(|model| {
        let layer = layer_of(model, 1);
        assert_eq!(layer.0.apply(delegate.0), OK, "{}", layer.0.messages());
        layer
    });
    let program = |at: usize| {
        let graph: *const _ = interpreters[at].0.program().graph();
        graph
    };
    assert_eq!(program(0), program(1));
    assert_ne!(program(0), program(2));
    for layer in &interpreters {
        assert_eq!(run(layer), [21.0, 43.0, 65.0]);
    }
}

#[test]
fn folded_constants_are_shared_for_all_shapes() {
    let halves = [0x3c00u16, 0x4000];
    let delegate = Owned::new();
    let interpreters = [(1, &halves), (3, &halves), (1, &[0x4000, 0x3c00])].map(|(rows, model)| {
        let fake = Fake::new();
        let [input, sum] = [(); 2].map(|()| fake.tensor(FLOAT32, &[rows, 2]));
        let half = fake.tensor(FLOAT16, &[2]);
        let tensor = fake.tensor_mut(half);
        (tensor.data, tensor.allocation_type) = (model.as_ptr().cast_mut().cast(), MMAP_RO);
        let bias = fake.tensor(FLOAT32, &[2]);
        fake.node::<()>(DEQUANTIZE, None, &[half], &[bias]);
        fake.node(ADD, add_params(), &[input, bias], &[sum]);
        fake.set_outputs(&[sum]);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        fake
    });
    let [a, b, other] = interpreters.each_ref().map(|fake| {
        let program = fake.program();
        let mut constants = program.graph().values.iter().filter_map(|value| value.data.clone());
        constants.find(|data| data.len() == 8).unwrap()
    });
    assert_eq!((a.as_ptr(), &a), (b.as_ptr(), &b));
    assert_ne!(a, other);
}

/// Creates, resizes, runs and destroys a delegate and an interpreter, in either order.
fn cycle(delegate_first: bool) {
    let fake = Fake::new();
    let [input, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 8]));
    fake.node::<()>(ABS, None, &[input], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::with(&[("num_threads", "2")]);
    assert_eq!(fake.apply(delegate.0), OK);
    for rows in [1, 5] {
        fake.resize(input, &[rows, 8]);
        assert_eq!(fake.allocate(0), OK);
        let values: Vec<f32> = (0..rows * 8).map(|i| -(i as f32)).collect();
        fake.write(input, &values);
        assert_eq!(fake.invoke(), OK);
        assert_eq!(fake.read(output).last(), Some(&((rows * 8 - 1) as f32)));
    }
    if delegate_first {
        drop(delegate);
        drop(fake);
    } else {
        drop(fake);
        drop(delegate);
    }
}

/// A cycle for memory checkers.
#[test]
fn cycles_do_not_leak() {
    for round in 0..200 {
        cycle(round % 2 == 0);
    }
}

#[test]
fn threads_with_their_own_interpreters_are_independent() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || (0..10).for_each(|round| cycle((thread + round) % 2 == 0)));
        }
    });
}
