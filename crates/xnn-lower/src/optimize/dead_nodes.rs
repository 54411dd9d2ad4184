//! Removes nodes whose results nothing reads.

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut removed = 0;
    // Backwards: a removed node may have been the last reader of an earlier node's result.
    for index in (0..rewriter.len()).rev() {
        let Some(node) = rewriter.node(index) else { continue };
        if node.outputs().iter().all(|&output| !rewriter.is_used(output)) {
            rewriter.remove(index);
            removed += 1;
        }
    }
    removed
}
