//! Partitions of a graph, and reports about them.

use super::{
    ADD, Chain, DEQUANTIZE, FLOAT16, NEG, Owned, SLICE, STABLEHLO_COMPOSITE, TRANSPOSE, UNHEARD_OF,
    add_params,
};
use crate::abi::OK;
use crate::builtin_data::{ActivationParams, CompositeParams};
use crate::fake::{FLOAT32, Fake};

#[test]
fn a_whole_graph_becomes_one_kernel() {
    let chain = Chain::new();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    assert_eq!((chain.fake.replacements(), chain.fake.left()), (1, vec![]));
    chain.check(0);
}

#[test]
fn memory_that_xnnpack_cannot_use_is_copied() {
    let chain = Chain::new();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    chain.check(4);
}

#[test]
fn kernels_match_the_groups_of_tflite() {
    let chain = Chain::new();
    let delegate = Owned::with(&[("disable", "NEG")]);
    assert_eq!(chain.fake.apply(delegate.0), OK);
    assert_eq!((chain.fake.replacements(), chain.fake.left()), (2, vec![NEG]));
    chain.check(0);
}

#[test]
fn options_limit_delegation() {
    for options in [[("min_partition_macs", "1")], [("max_partitions", "0")]] {
        let chain = Chain::new();
        let delegate = Owned::with(&options);
        assert_eq!(chain.fake.apply(delegate.0), OK);
        assert_eq!(chain.fake.replacements(), 0, "{options:?}");
    }
}

#[test]
fn small_partitions_are_delegated_only_with_keep_small() {
    for (options, replaced) in [(&[][..], 0), (&[("keep_small", "true")][..], 1)] {
        let fake = Fake::new();
        let [a, b] = [(); 2].map(|()| fake.tensor(FLOAT32, &[4096]));
        let c = fake.tensor(FLOAT32, &[1]);
        let [begin, size] = [0i32, 1].map(|at| fake.constant(2, &[1], &[at]));
        fake.node::<()>(UNHEARD_OF, None, &[a], &[b]);
        fake.node::<()>(SLICE, None, &[b, begin, size], &[c]);
        fake.set_outputs(&[c]);
        let delegate = Owned::with(options);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.replacements(), replaced, "{options:?}");
    }
}

#[test]
fn optimization_can_be_disabled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let changes = |option: Option<(&str, &str)>| {
        let fake = Fake::new();
        let [a, b, c] = [[2, 3], [3, 2], [2, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
        let order = fake.constant(2, &[2], &[1i32, 0]);
        fake.node::<()>(TRANSPOSE, None, &[a, order], &[b]);
        fake.node::<()>(TRANSPOSE, None, &[b, order], &[c]);
        fake.set_outputs(&[c]);
        let explain = ("explain", path.to_str().unwrap());
        let options: Vec<_> = option.into_iter().chain([explain]).collect();
        let delegate = Owned::with(&options);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        let text = std::fs::read_to_string(&path).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["partitions"][0]["optimization"]["changes"]["transposes"].as_u64()
    };
    assert!(changes(None).is_some());
    assert_eq!(changes(Some(("disable_pass", "clamps"))), changes(None));
    assert_eq!(changes(Some(("disable_pass", "transposes"))), None);
    assert_eq!(changes(Some(("no_optimize", "true"))), None);
}

#[test]
fn composites_are_lowered_by_name() {
    // `{"scale": 0.5}` as a FlexBuffer.
    let scale = b"scale\0\x01\x07\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\x3f\x0e\x05\x26\x01";
    let attention = c"odml.scaled_dot_product_attention";
    for (name, version, replaced) in [(attention, 0, 1), (attention, 1, 0), (c"odml.other", 0, 0)] {
        let fake = Fake::new();
        let [q, k, v, output] = [(); 4].map(|()| fake.tensor(FLOAT32, &[1, 2, 1, 2]));
        let params = CompositeParams {
            name: name.as_ptr(),
            subgraph_index: 1,
            version,
            attributes: scale.as_ptr().cast(),
            attributes_size: scale.len(),
        };
        fake.node(STABLEHLO_COMPOSITE, Some(params), &[q, k, v], &[output]);
        fake.set_outputs(&[output]);
        let delegate = Owned::new();
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.replacements(), replaced, "{name:?} {version}");
        if replaced == 0 {
            continue;
        }
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        // Both keys are equal, so each query gives the mean of the values.
        for (id, values) in [(q, [1.0, 2.0, 3.0, 4.0]), (k, [1.0; 4]), (v, [1.0, 2.0, 5.0, 8.0])] {
            fake.write(id, &values);
        }
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(output), [3.0, 5.0, 3.0, 5.0]);
    }
}

#[test]
fn unknown_operators_and_options_are_not_delegated() {
    let fake = Fake::new();
    let [a, b, c] = [(); 3].map(|()| fake.tensor(FLOAT32, &[4]));
    fake.node::<()>(UNHEARD_OF, None, &[a], &[b]);
    fake.node::<ActivationParams>(ADD, None, &[b, b], &[c]);
    fake.custom("NobodyKnows", &[1, 2, 3], &[c], &[a]);
    fake.set_outputs(&[c]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!(fake.replacements(), 0);
}

#[test]
fn constants_that_other_nodes_read_stay_in_the_interpreter() {
    let fake = Fake::new();
    let half = fake.constant(FLOAT16, &[2], &[0x3c00u16, 0x4000]);
    let [weights, input, sum, other] = [(); 4].map(|()| fake.tensor(FLOAT32, &[2]));
    fake.node::<()>(DEQUANTIZE, None, &[half], &[weights]);
    fake.node(ADD, add_params(), &[input, weights], &[sum]);
    fake.node::<()>(UNHEARD_OF, None, &[weights], &[other]);
    fake.set_outputs(&[sum, other]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!((fake.replacements(), fake.left()), (1, vec![DEQUANTIZE, UNHEARD_OF]));
}

#[test]
fn reports_are_written_for_each_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let delegate = Owned::with(&[("explain", path.to_str().unwrap()), ("disable", "NEG")]);
    let chains = [Chain::new(), Chain::new()];
    for chain in &chains {
        assert_eq!(chain.fake.apply(delegate.0), OK);
    }
    for name in ["report.json", "report.1.json"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["summary"], "delegated 3 of 4 nodes in 2 partitions");
        assert_eq!(report["nodes"][1]["reason"]["code"], "disabled");
    }
}
