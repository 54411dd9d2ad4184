//! State that runners of one model share.

use super::{Engine, Runner};

impl Runner {
    /// Moves the values of resource variables and hash tables from a runner of another subgraph of the same model. Called
    /// before each run, with every other runner, it gives all of them one state.
    pub fn adopt_state(&mut self, other: &mut Self) {
        if let (Engine::Partial(mine), Engine::Partial(theirs)) =
            (&mut self.engine, &mut other.engine)
        {
            mine.adopt_state(theirs);
        }
    }
}
