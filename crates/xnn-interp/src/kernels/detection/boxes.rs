//! Boxes and their overlap.

/// Two opposite corners: y and x of one, then of the other.
pub(super) type Corners = [f32; 4];

/// Intersection over union, or 0 if a box has no area.
pub(super) fn overlap(a: Corners, b: Corners) -> f32 {
    let sorted = |[y1, x1, y2, x2]: Corners| [y1.min(y2), x1.min(x2), y1.max(y2), x1.max(x2)];
    let (a, b) = (sorted(a), sorted(b));
    let area = |c: Corners| (c[2] - c[0]) * (c[3] - c[1]);
    let (area_a, area_b) = (area(a), area(b));
    if area_a <= 0.0 || area_b <= 0.0 {
        return 0.0;
    }
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let intersection = height * width;
    intersection / (area_a + area_b - intersection)
}
