use crate::fixture::{Fixture, any_f32, assert_close, f32, ramp};
use xnnpack::{Rope, ScaledDotProductAttention};

#[test]
fn rope_rotates_pairs() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 1, 2]), &[1.0f32, 2.0]);
    // A quarter turn: cosine 0, sine 1.
    let weights = fixture.constant(f32(&[3, 2]), &[0.0f32, 1.0, 9.0, 9.0, 9.0, 9.0]);
    let output = fixture.output(any_f32());
    let result = fixture.node(Rope { input, weights, output }).run::<f32>();
    assert_close(&result, &[-2.0, 1.0], 1e-6);
}

#[test]
fn rope_weights_must_suffice() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 1, 2]), &ramp(6));
    let odd = fixture.input(f32(&[1, 1, 1, 3]), &ramp(3));
    let short = fixture.constant(f32(&[2, 2]), &ramp(4));
    let wide = fixture.constant(f32(&[3, 4]), &ramp(12));
    let odd_weights = fixture.constant(f32(&[3, 3]), &ramp(9));
    let output = fixture.internal(any_f32());
    fixture.refusal(Rope { input, weights: short, output });
    fixture.refusal(Rope { input, weights: wide, output });
    fixture.refusal(Rope { input: odd, weights: odd_weights, output });
}

#[test]
fn attention_multi_head_and_multi_query() {
    for key_dims in [&[1usize, 2, 2, 1][..], &[1, 2, 1]] {
        let elements = key_dims.iter().product::<usize>();
        let mut fixture = Fixture::new();
        let query = fixture.input(f32(&[1, 2, 1, 1]), &[0.0f32, 0.0]);
        let key = fixture.input(f32(key_dims), &vec![1.0f32; elements]);
        let value = fixture.input(f32(key_dims), &ramp(elements));
        let scale = fixture.constant(f32(&[1]), &[1.0f32]);
        let mask = fixture.constant(f32(&[1, 2]), &[0.0f32, 0.0]);
        let output = fixture.output(f32(&[1, 2, 1, 1]));
        let node =
            ScaledDotProductAttention { logits_cap: None, query, key, value, scale, mask, output };
        let expected = if key_dims.len() == 4 { [0.5, 2.5] } else { [0.5, 0.5] };
        assert_close(&fixture.node(node).run::<f32>(), &expected, 1e-6);
    }
}

#[test]
fn wrong_attention_is_refused() {
    let mut fixture = Fixture::new();
    let query = fixture.input(f32(&[1, 2, 3, 4]), &ramp(24));
    let key = fixture.input(f32(&[1, 2, 5, 4]), &ramp(40));
    let value = fixture.input(f32(&[1, 2, 5, 6]), &ramp(60));
    let scale = fixture.constant(f32(&[4]), &ramp(4));
    let mask = fixture.constant(f32(&[3, 5]), &ramp(15));
    let output = fixture.internal(any_f32());
    let good = ScaledDotProductAttention {
        logits_cap: Some(30.0),
        query,
        key,
        value,
        scale,
        mask,
        output,
    };
    fixture.refusal(ScaledDotProductAttention { logits_cap: Some(0.0), ..good.clone() });
    fixture.refusal(ScaledDotProductAttention { key: value, ..good.clone() });
    fixture.refusal(ScaledDotProductAttention { value: query, ..good.clone() });
    fixture.refusal(ScaledDotProductAttention { scale: mask, ..good.clone() });
    fixture.refusal(ScaledDotProductAttention { mask: scale, ..good.clone() });
    fixture.refusal(ScaledDotProductAttention { query: mask, ..good.clone() });
    fixture.graph.define(good).unwrap();
    assert_eq!(fixture.graph.shape(output).unwrap(), [1, 2, 3, 6]);
}
