//! Bilinear resize with each kind of coordinates.

use xnn_format::{NodeOp, flags};

use crate::support::run_one;

fn resize(flags: u32) -> xnn_runtime::Result<Vec<f32>> {
    run_one(
        (&[1, 1, 2, 1], &[0.0, 4.0]),
        &[1, 1, 4, 1],
        |input, output| NodeOp::StaticResizeBilinear2d {
            new_height: 1,
            new_width: 4,
            input,
            output,
        },
        flags,
    )
}

#[test]
fn half_pixel_centers_legacy_and_aligned_corners() {
    assert_eq!(resize(0).unwrap(), [0.0, 1.0, 3.0, 4.0]);
    assert_eq!(resize(flags::TENSORFLOW_LEGACY_MODE).unwrap(), [0.0, 2.0, 4.0, 4.0]);
    let aligned = resize(flags::ALIGN_CORNERS).unwrap();
    crate::support::assert_close(&aligned, &[0.0, 4.0 / 3.0, 8.0 / 3.0, 4.0], 1e-6);
}

#[test]
fn contradictory_coordinates_are_refused() {
    assert!(resize(flags::ALIGN_CORNERS | flags::TENSORFLOW_LEGACY_MODE).is_err());
}
