//! Intermediate tensors in use at once lie apart, and workspaces take little more than they have to.

// An installed library does not have the function.
#![cfg(xnnpack_sys_own)]

use std::mem::size_of;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnnpack_sys as xnn;

const NONE: u32 = xnn::XNN_INVALID_VALUE_ID;

/// XNNPACK's `xnn_usage_record` (`xnnpack/memory-planner.h`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Value {
    first_node: u32,
    last_node: u32,
    size: usize,
    offset: usize,
    reused: u32,
    operator: u32,
}

/// XNNPACK's `xnn_value_allocation_tracker`.
#[repr(C)]
struct Tracker {
    bytes: usize,
    values: *mut Value,
    first: usize,
    last: usize,
}

unsafe extern "C" {
    fn xnnpack_sys_plan_values(tracker: *mut Tracker);
}

impl Value {
    /// A value that is in use from one node to another.
    fn new(first_node: u32, last_node: u32, size: usize) -> Self {
        Self { first_node, last_node, size, offset: usize::MAX, reused: NONE, operator: NONE }
    }

    fn meets(&self, other: &Self) -> bool {
        self.first_node <= other.last_node && other.first_node <= self.last_node
    }
}

/// Places values and returns the bytes that they span.
fn plan(values: &mut [Value]) -> usize {
    assert_eq!((size_of::<Value>(), size_of::<Tracker>()), (32, 32));
    let (first, last) = match values.len() {
        0 => (NONE as usize, NONE as usize),
        len => (0, len - 1),
    };
    let mut tracker = Tracker { bytes: 1, values: values.as_mut_ptr(), first, last };
    // SAFETY: both have XNNPACK's layout (`csrc/layout.c`), and the tracker has these values. The library is initialized, which its
    // allocator needs.
    unsafe {
        assert_eq!(xnn::xnn_initialize(std::ptr::null()), xnn::xnn_status_success);
        xnnpack_sys_plan_values(&raw mut tracker);
    }
    tracker.bytes
}

/// Returns the most bytes that are in use at once, which is the least that any plan takes.
fn least(values: &[Value]) -> usize {
    let at = |node| {
        let in_use = |value: &&Value| (value.first_node..=value.last_node).contains(&node);
        values.iter().filter(in_use).map(|value| value.size).sum()
    };
    values.iter().map(|value| at(value.first_node)).max().unwrap_or(0)
}

fn assert_sound(values: &[Value], bytes: usize) {
    let placed: Vec<&Value> = values.iter().filter(|value| value.size > 0).collect();
    for (index, a) in placed.iter().enumerate() {
        assert!(a.offset + a.size <= bytes, "{a:?} in {bytes}");
        for b in &placed[..index] {
            let is_apart = a.offset + a.size <= b.offset || b.offset + b.size <= a.offset;
            assert!(is_apart || !a.meets(b), "{a:?} and {b:?}");
        }
    }
}

#[test]
fn values_in_use_at_once_lie_apart() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let (mut taken, mut needed) = (0, 0);
    for _ in 0..500 {
        let count = rng.random_range(0..60);
        let mut value = || {
            let first = rng.random_range(0..40);
            Value::new(first, first + rng.random_range(0..6), rng.random_range(0..30))
        };
        let mut values: Vec<Value> = (0..count).map(|_| value()).collect();
        let bytes = plan(&mut values);
        assert_sound(&values, bytes);
        taken += bytes;
        needed += least(&values);
    }
    assert!((needed..needed + needed / 50).contains(&taken), "{taken} for {needed}");
}

#[test]
fn room_below_other_values_is_used() {
    // Each node reads what the one before it wrote. XNNPACK puts the third value behind the second.
    let mut chain = [Value::new(0, 1, 64), Value::new(1, 2, 64), Value::new(2, 3, 64)];
    assert_eq!(plan(&mut chain), 128);
    assert_eq!(chain.map(|value| value.offset), [0, 64, 0]);
}

#[test]
fn what_is_at_the_top_is_placed_anew() {
    // Placed by their sizes alone they take 8 bytes.
    let mut values = [(2, 2, 3), (1, 3, 2), (3, 5, 4), (2, 2, 2)]
        .map(|(first, last, size)| Value::new(first, last, size));
    assert_eq!((plan(&mut values), least(&values)), (7, 7));
    assert_sound(&values, 7);
}

#[test]
fn what_is_computed_in_place_lies_where_its_operand_does() {
    let in_place = Value { reused: 1, ..Value::new(2, 3, 0) };
    let mut values = [Value::new(0, 1, 64), Value::new(1, 3, 64), in_place, Value::new(3, 4, 64)];
    assert_eq!(plan(&mut values), 128);
    assert_eq!(values.map(|value| value.offset), [0, 64, 64, 0]);
    assert_eq!(plan(&mut []), 0);
    assert_eq!(plan(&mut [Value::new(0, 1, 0)]), 0);
}

#[test]
fn values_beyond_all_memory_take_more_than_there_is() {
    let mut values = [Value::new(0, 1, usize::MAX / 3); 4];
    assert_eq!(plan(&mut values), usize::MAX / 2);
}

#[test]
fn graphs_of_many_values_are_placed_too() {
    // So many that there is one round.
    let mut values: Vec<Value> = (0..3000).map(|at| Value::new(at, at + 2, 16)).collect();
    let bytes = plan(&mut values);
    assert_sound(&values, bytes);
    assert_eq!(bytes, 48);
}
