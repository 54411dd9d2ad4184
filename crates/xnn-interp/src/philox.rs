//! Random bits: Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3").

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use xnn_model::SubgraphId;

/// Number of 32-bit values in a block.
pub(crate) const BLOCK: usize = 4;

/// A generator, whose output is a function of its key and a counter.
#[derive(Clone, Debug)]
pub(crate) struct Philox {
    key: u64,
    /// Index of the next block, lowest 32 bits first.
    counter: u128,
}

impl Philox {
    /// Creates the generator that TensorFlow derives from two seeds. If both are 0, its seed is
    /// random.
    pub(crate) fn new(seed: u64, seed2: u64) -> Self {
        let [key, start] = match [seed, seed2] {
            [0, 0] => [(); 2].map(|()| RandomState::new().build_hasher().finish()),
            seeds => seeds,
        };
        Self { key, counter: u128::from(start) << 64 }
    }

    /// Skips blocks.
    pub(crate) fn skip(&mut self, blocks: u128) {
        self.counter = self.counter.wrapping_add(blocks);
    }

    /// The next block.
    pub(crate) fn block(&mut self) -> [u32; BLOCK] {
        const ROUNDS: usize = 10;
        const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
        const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
        let words = |value: u64| [value as u32, (value >> 32) as u32];
        let mut key = words(self.key);
        let ([a, b], [c, d]) = (words(self.counter as u64), words((self.counter >> 64) as u64));
        let mut block = [a, b, c, d];
        for _ in 0..ROUNDS {
            let [low_0, high_0] = words(MULTIPLIERS[0] * u64::from(block[0]));
            let [low_1, high_1] = words(MULTIPLIERS[1] * u64::from(block[2]));
            block = [high_1 ^ block[1] ^ key[0], low_1, high_0 ^ block[3] ^ key[1], low_0];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        self.skip(1);
        block
    }
}

/// Generators by operator. They continue from run to run.
#[derive(Debug, Default)]
pub(crate) struct Generators(HashMap<(SubgraphId, usize), Philox>);

impl Generators {
    /// The generator of an operator, which is created at the first use.
    pub(crate) fn of(
        &mut self,
        operator: (SubgraphId, usize),
        make: impl FnOnce() -> Philox,
    ) -> &mut Philox {
        self.0.entry(operator).or_insert_with(make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the authors' known answers (`kat_vectors` of Random123).
    #[test]
    fn known_answers() {
        let block = |key: u64, counter: u128| Philox { key, counter }.block();
        assert_eq!(block(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            block(u64::MAX, u128::MAX),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            block(0x299f_31d0_a409_3822, 0x0370_7344_1319_8a2e_85a3_08d3_243f_6a88),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn seeds_of_0_are_nobodys() {
        let block = |a, b| Philox::new(a, b).block();
        assert_eq!(block(1, 2), block(1, 2));
        assert_ne!(block(1, 2), block(2, 1));
        assert_ne!(block(0, 0), block(0, 0));
    }
}
