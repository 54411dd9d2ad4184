//! Shapes that operators can start from.

use xnn_testing::Random;

/// A kind of shape. All have few elements, and odd sizes among them.
#[derive(Clone, Copy, Debug)]
pub enum Shapes {
    /// Ranks from the first to the second.
    Ranks(usize, usize),
    /// `[batch, height, width, channels]`.
    Image,
    /// Images of which the channels are blocks of pixels.
    Depth,
    /// Images that divide into blocks.
    Space,
    /// Images of which the batch is blocks of pixels.
    Batches,
    /// Some dimensions have size 1.
    Ones,
    /// The last dimension is even.
    Pairs,
}

impl Shapes {
    pub fn draw(self, random: &mut Random) -> Vec<usize> {
        let mut upto = |most: usize| 1 + random.below(most);
        match self {
            Self::Ranks(least, most) => {
                let rank = least + upto(most - least + 1) - 1;
                let longest = [16, 40, 14, 9, 6, 4, 3][rank.min(6)];
                (0..rank).map(|_| upto(longest)).collect()
            }
            Self::Image => vec![upto(2), upto(9), upto(9), upto(13)],
            Self::Depth => {
                let block = upto(3);
                vec![upto(2), upto(4), upto(4), block * block * upto(4)]
            }
            Self::Space => {
                let block = upto(3);
                vec![upto(2), block * upto(3), block * upto(3), upto(5)]
            }
            Self::Batches => vec![upto(3) * [1, 2, 4, 6][upto(4) - 1], upto(4), upto(4), upto(5)],
            Self::Ones => {
                let rank = upto(6);
                let one = upto(rank) - 1;
                let dim = |axis| if axis == one || upto(3) == 1 { 1 } else { upto(4) };
                (0..rank).map(dim).collect()
            }
            Self::Pairs => {
                let mut shape = Self::Ranks(1, 5).draw(random);
                if let Some(last) = shape.last_mut() {
                    *last += *last % 2;
                }
                shape
            }
        }
    }

    /// Gives a shape another last dimension, where it may have any.
    pub fn widen(self, shape: &mut [usize], width: usize) {
        let width = if matches!(self, Self::Pairs) { 2 * width } else { width };
        if let (Self::Ranks(..) | Self::Image | Self::Pairs, Some(last)) = (self, shape.last_mut())
        {
            *last = width;
        }
    }

    /// Whether a shape is of this kind, or may be.
    pub fn fit(self, shape: &[usize]) -> bool {
        match self {
            Self::Ranks(least, most) => (least..=most).contains(&shape.len()),
            Self::Image | Self::Depth | Self::Space | Self::Batches => shape.len() == 4,
            Self::Ones => shape.contains(&1),
            Self::Pairs => shape.last().is_some_and(|last| last % 2 == 0),
        }
    }
}
