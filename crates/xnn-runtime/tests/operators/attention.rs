//! Operators of transformers, compared with naive loops.

use xnn_format::NodeOp;

use crate::support::{Builder, assert_close, random};

#[test]
fn attention() {
    let (heads, tokens, keys, channels, value_channels) = (2, 3, 4, 5, 6);
    let query = random(1, heads * tokens * channels);
    let key = random(2, heads * keys * channels);
    let value = random(3, heads * keys * value_channels);
    let (scale, mask) = (random(4, channels), random(5, tokens * keys));
    let mut builder = Builder::new();
    let op = NodeOp::ScaledDotProductAttention {
        query: builder.input_f32(&[1, heads, tokens, channels]),
        key: builder.input_f32(&[1, heads, keys, channels]),
        value: builder.input_f32(&[1, heads, keys, value_channels]),
        scale: builder.constant_f32(&[channels], &scale),
        mask: builder.constant_f32(&[tokens, keys], &mask),
        output: builder.output_f32(&[1, heads, tokens, value_channels]),
    };
    builder.node(op);
    let got = builder.run_f32(&[&query, &key, &value]).unwrap();

    let mut expected = Vec::new();
    for (head, token) in (0..heads).flat_map(|h| (0..tokens).map(move |t| (h, t))) {
        let row = &query[(head * tokens + token) * channels..][..channels];
        let weights: Vec<f32> = (0..keys)
            .map(|k| {
                let other = &key[(head * keys + k) * channels..][..channels];
                let dot: f32 = row.iter().zip(other).zip(&scale).map(|((q, k), s)| q * s * k).sum();
                (dot + mask[token * keys + k]).exp()
            })
            .collect();
        let sum: f32 = weights.iter().sum();
        for channel in 0..value_channels {
            let at = |k: usize| value[(head * keys + k) * value_channels + channel];
            expected.push(weights.iter().enumerate().map(|(k, w)| w / sum * at(k)).sum::<f32>());
        }
    }
    assert_close(&got, &expected, 1e-5);
}

#[test]
fn rotary_embedding_rotates_pairs_of_channels() {
    let (tokens, channels) = (2, 4);
    let input = random(1, tokens * channels);
    let weights = random(2, 3 * channels);
    let run = |max_tokens| {
        let mut builder = Builder::new();
        let op = NodeOp::Rope {
            max_tokens,
            input: builder.input_f32(&[1, tokens, 1, channels]),
            weights: builder.constant_f32(&[3, channels], &weights),
            output: builder.output_f32(&[1, tokens, 1, channels]),
        };
        builder.node(op);
        builder.run_f32(&[&input])
    };
    let mut expected = vec![0.0; tokens * channels];
    for token in 0..tokens {
        for pair in 0..2 {
            let (cos, sin) =
                (weights[token * channels + pair], weights[token * channels + 2 + pair]);
            let [a, b] = [0, 2].map(|half| input[token * channels + half + pair]);
            expected[token * channels + pair] = a * cos - b * sin;
            expected[token * channels + 2 + pair] = a * sin + b * cos;
        }
    }
    assert_close(&run(3).unwrap(), &expected, 1e-6);
    // Weights for fewer tokens than the input has.
    assert_eq!(run(4).unwrap_err().failing_node(), Some(0));
}
