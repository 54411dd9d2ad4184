//! Who lives longer, and who runs at the same time.

use super::fake::{FLOAT32, Fake};
use super::{ABS, Chain, Owned};
use crate::abi::OK;

#[test]
fn a_delegate_may_go_before_its_interpreter() {
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

/// Makes, resizes, runs and destroys delegate and interpreter, in both orders.
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

/// What memory checkers are to watch.
#[test]
fn cycles_leave_nothing_behind() {
    for round in 0..200 {
        cycle(round % 2 == 0);
    }
}

#[test]
fn threads_with_interpreters_of_their_own_do_not_meet() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || (0..10).for_each(|round| cycle((thread + round) % 2 == 0)));
        }
    });
}
