//! Bilinear resize, compared with naive loops: images of random sizes, whose rows share pointers
//! and weights.

use std::fmt::Debug;

use crate::fixture::{Fixture, f32, qint8, quint8};
use xnn_testing::Random;
use xnnpack::{Element, Flags, ResizeBilinear2d, RuntimeOptions, TensorSpec, ThreadPool};

use super::{RARELY, one_in, one_to};

/// Fractional bits of weights for 8-bit pixels.
const WEIGHT_BITS: u32 = 11;

/// Source position of a resized image's pixel along one axis.
struct Place {
    from: usize,
    to: usize,
    /// Distance from `from`.
    weight: f32,
}

impl Place {
    /// Computes the position in fp32, with the same steps as XNNPACK.
    fn of(at: usize, old: usize, new: usize, flags: Flags) -> Self {
        let last = usize::from(flags.contains(Flags::ALIGN_CORNERS) && new != 1);
        let scale = (old - last) as f32 / (new - last) as f32;
        let exact = if flags == Flags::default() {
            let center = at as f32 * scale + (0.5 * scale - 0.5);
            center.max(0.0).min((old - 1) as f32)
        } else {
            at as f32 * scale
        };
        let from = exact as usize;
        Self { from, to: (from + 1).min(old - 1), weight: exact - from as f32 }
    }
}

#[derive(Debug)]
struct Resize {
    batch: usize,
    old: [usize; 2],
    new: [usize; 2],
    channels: usize,
    flags: Flags,
    threads: usize,
}

impl Resize {
    fn any(random: &mut Random) -> Self {
        // Sometimes wider than what is computed at once.
        let most = if one_in(8, random) { 300 } else { 40 };
        let mut size = |most| [0; 2].map(|_| one_to(most, random));
        Self {
            old: size(20),
            new: size(most),
            batch: one_to(2, random),
            channels: match random.below(3) {
                _ if one_in(RARELY, random) => 2050,
                0 => one_to(4, random),
                _ => one_to(40, random),
            },
            flags: [Flags::default(), Flags::ALIGN_CORNERS, Flags::TENSORFLOW_LEGACY]
                [random.below(3)],
            threads: if one_in(RARELY, random) { 2 } else { 1 },
        }
    }

    fn elements(&self) -> usize {
        self.batch * self.old[0] * self.old[1] * self.channels
    }

    fn dims(&self, [height, width]: [usize; 2]) -> [usize; 4] {
        [self.batch, height, width, self.channels]
    }

    /// Expected output: `mix` of the elements of four pixels with horizontal and vertical weights.
    fn expected<T: Copy>(&self, input: &[T], mix: impl Fn([T; 4], [f32; 2]) -> T) -> Vec<T> {
        let mut output = Vec::new();
        for image in 0..self.batch {
            for y in 0..self.new[0] {
                let down = Place::of(y, self.old[0], self.new[0], self.flags);
                for x in 0..self.new[1] {
                    let across = Place::of(x, self.old[1], self.new[1], self.flags);
                    for channel in 0..self.channels {
                        let at = |row, column| {
                            let pixel = (image * self.old[0] + row) * self.old[1] + column;
                            input[pixel * self.channels + channel]
                        };
                        let [left, right] = [across.from, across.to];
                        let corners = [
                            at(down.from, left),
                            at(down.from, right),
                            at(down.to, left),
                            at(down.to, right),
                        ];
                        output.push(mix(corners, [across.weight, down.weight]));
                    }
                }
            }
        }
        output
    }

    fn check<T: Element + PartialEq + Debug>(
        &self,
        spec: impl Fn(&[usize]) -> TensorSpec,
        input: &[T],
        expected: &[T],
    ) {
        let mut fixture = Fixture::new();
        let image = fixture.input(spec(&self.dims(self.old)), input);
        let output = fixture.output(spec(&self.dims(self.new)));
        let node = ResizeBilinear2d { size: self.new, input: image, output, flags: self.flags };
        let threadpool = (self.threads > 1).then(|| ThreadPool::new(self.threads).unwrap().into());
        let options = RuntimeOptions { threadpool, ..RuntimeOptions::default() };
        let actual = fixture.node(node).run_with::<T>(&options).unwrap().swap_remove(0);
        let different = actual.iter().zip(expected).position(|(a, b)| a != b);
        assert!(
            different.is_none() && actual.len() == expected.len(),
            "{self:?}: {different:?}, {:?}",
            different.map(|at| (&actual[at], &expected[at]))
        );
    }
}

/// Rounds weights of 8-bit images and results to nearest.
fn mix_bytes(corners: [i32; 4], weights: [f32; 2]) -> i32 {
    let one = (1 << WEIGHT_BITS) as f32;
    let [across, down] = weights.map(|weight| (weight * one).round_ties_even() as i32);
    let between = |from: i32, to: i32| (from << WEIGHT_BITS) + (to - from) * across;
    let [above, below] = [between(corners[0], corners[1]), between(corners[2], corners[3])];
    let sum = (above << WEIGHT_BITS) + (below - above) * down;
    (sum + (1 << (2 * WEIGHT_BITS - 1))) >> (2 * WEIGHT_BITS)
}

#[test]
fn images_of_f32() {
    let random = &mut Random::new(17);
    // Microkernels for ARM round once, those for x86 twice.
    let between = |from: f32, to: f32, weight: f32| match cfg!(target_arch = "x86_64") {
        true => from + (to - from) * weight,
        false => (to - from).mul_add(weight, from),
    };
    for _ in 0..200 {
        let resize = Resize::any(random);
        let input = random.f32s(resize.elements(), -1.0, 1.0);
        let expected = resize.expected(&input, |corners, [across, down]| {
            let above = between(corners[0], corners[1], across);
            let below = between(corners[2], corners[3], across);
            between(above, below, down)
        });
        resize.check(f32, &input, &expected);
    }
}

#[test]
fn images_of_8_bits() {
    let random = &mut Random::new(18);
    for _ in 0..100 {
        let resize = Resize::any(random);
        let input = random.i8s(resize.elements());
        let expected = resize
            .expected(&input, |corners, weights| mix_bytes(corners.map(i32::from), weights) as i8);
        resize.check(|dims| qint8(dims, 3, 0.5), &input, &expected);

        let input: Vec<u8> = input.into_iter().map(i8::cast_unsigned).collect();
        let expected = resize
            .expected(&input, |corners, weights| mix_bytes(corners.map(i32::from), weights) as u8);
        resize.check(|dims| quint8(dims, 3, 0.5), &input, &expected);
    }
}
