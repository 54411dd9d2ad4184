//! RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL, with the same values as TFLite for the
//! same seeds.

use std::f64::consts::PI;

use xnn_model::op::RandomOptions;
use xnn_model::{DType, Op, SubgraphId};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::philox::{BLOCK, Philox};

/// The generator of an operator. Each interpreter has its own.
struct Source {
    options: RandomOptions,
    place: (SubgraphId, usize),
}

impl Source {
    fn of(context: &OperatorContext<'_>) -> Result<Self, Refusal> {
        let (Op::RandomUniform(options)
        | Op::RandomStandardNormal(options)
        | Op::Multinomial(options)) = &context.operator.op
        else {
            return refuse(format!("{} is not a random operator", context.operator.op));
        };
        Ok(Self { options: options.clone(), place: context.place })
    }

    fn get<'a>(&self, call: &'a mut Call<'_>) -> &'a mut Philox {
        // TFLite keeps the lower 32 bits of each seed, sign-extended.
        let RandomOptions { seed, seed2 } = self.options;
        let [seed, seed2] = [seed, seed2].map(|seed| i64::from(seed as i32).cast_unsigned());
        call.generators.of(self.place, || Philox::new(seed, seed2))
    }
}

/// A single-precision float in `[0, 1)`, from 23 bits.
fn single(bits: u32) -> f32 {
    f32::from_bits(1.0f32.to_bits() | bits & 0x7f_ffff) - 1.0
}

/// A double-precision float in `[0, 1)`, from 52 bits.
fn double(high: u32, low: u32) -> f64 {
    let bits = u64::from(high & 0xf_ffff) << 32 | u64::from(low);
    f64::from_bits(1.0f64.to_bits() | bits) - 1.0
}

/// Two normally distributed values from two uniform ones (Box-Muller transform).
fn normals(a: u32, b: u32) -> [f32; 2] {
    const LEAST: f32 = 1e-7;
    let radius = (-2.0 * single(a).max(LEAST).ln()).sqrt();
    let angle = (2.0 * PI * f64::from(single(b))) as f32;
    [angle.sin() * radius, angle.cos() * radius]
}

/// Fills an output with values computed from blocks of random bits. The rest of the last block is
/// discarded.
fn fill(
    context: &OperatorContext<'_>,
    numbers: fn([u32; BLOCK]) -> [f32; BLOCK],
) -> Result<Run, Refusal> {
    context.expect_input(0, DType::I32)?;
    context.expect_output(0, DType::F32)?;
    let source = Source::of(context)?;
    run(move |call| {
        let mut generator = source.get(call).clone();
        for out in call.output::<f32>(0)?.chunks_mut(BLOCK) {
            out.iter_mut().zip(numbers(generator.block())).for_each(|(out, number)| *out = number);
        }
        *source.get(call) = generator;
        Ok(())
    })
}

pub(super) fn uniform(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    fill(context, |bits| bits.map(single))
}

pub(super) fn normal(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    fill(context, |[a, b, c, d]| {
        let ([a, b], [c, d]) = (normals(a, b), normals(c, d));
        [a, b, c, d]
    })
}

/// MULTINOMIAL: draws classes by their unnormalized log probabilities, `[batch, classes]` to
/// `[batch, samples]`.
pub(super) fn multinomial(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::F32)?;
    context.expect_input(1, DType::I32)?;
    super::shape::expect_index_type(context, 0)?;
    let source = Source::of(context)?;
    run(move |call| {
        let [batch, classes] = call.dims(0)?;
        let [_, samples] = call.output_dims(0)?;
        if classes == 0 {
            return refuse("the logits have no classes");
        }
        // A run advances the generator by what TensorFlow reserves for it, not by what it uses.
        let generator = source.get(call);
        let mut blocks = generator.clone();
        let reserved = batch as u128 * samples.next_multiple_of(4) as u128 * 2 * 256;
        generator.skip(reserved);
        let mut pairs = std::iter::repeat_with(move || {
            let [a, b, c, d] = blocks.block();
            [double(a, b), double(c, d)]
        })
        .flatten();
        let logits = call.input::<f32>(0)?;
        let mut chosen = Vec::with_capacity(batch * samples);
        let mut sums = Vec::with_capacity(classes);
        for logits in logits.chunks_exact(classes) {
            let finite = logits.iter().copied().filter(|logit| logit.is_finite());
            let most = f64::from(finite.fold(f32::MIN, f32::max));
            sums.clear();
            sums.extend(logits.iter().scan(0.0, |sum, &logit| {
                if logit.is_finite() {
                    *sum += (f64::from(logit) - most).exp();
                }
                Some(*sum)
            }));
            let total = sums.last().copied().unwrap_or(0.0);
            let choose = |number: f64| sums.partition_point(|&sum| sum <= number * total);
            chosen.extend(pairs.by_ref().take(samples).map(choose));
        }
        super::shape::store(call, 0, chosen.into_iter())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_numbers_below_1() {
        assert_eq!([0, 1 << 22, u32::MAX].map(single), [0.0, 0.5, 1.0 - f32::EPSILON]);
        assert_eq!(double(0, 0), 0.0);
        assert_eq!(double(1 << 19, 0), 0.5);
        assert_eq!(double(u32::MAX, u32::MAX), 1.0 - f64::EPSILON);
    }

    #[test]
    fn normal_numbers_are_finite() {
        for (a, b) in [(0, 0), (0, u32::MAX), (u32::MAX, 0), (u32::MAX, u32::MAX)] {
            assert!(normals(a, b).iter().all(|number| number.abs() < 6.0), "{a} {b}");
        }
    }
}
