//! Packed weights that outlive the process: in a blob, or in a cache folder.

use std::fs;
use std::path::{Path, PathBuf};

use xnn_format::{
    Datatype, Graph, PackedEntry, PackedKey, PackedSection, Value, constants_digest, digest,
    packing_digest, write_atomic,
};
use xnnpack::{PackedNode, PackedWeights, Subgraph, WeightsCache};

use crate::define;

/// Key of packed weights without the digest of the constants, which would take longer than all the
/// rest.
pub(crate) fn key(graph_digest: u128, subgraph: &Subgraph, origins: &[usize]) -> PackedKey {
    // Nodes are identified by index, so the key includes how the graph's nodes map to XNNPACK's.
    let mut layout = xnnpack::build_identifier().to_vec();
    layout.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
    for (kind, origin) in subgraph.kinds().zip(origins) {
        layout.extend_from_slice(kind.as_bytes());
        layout.extend_from_slice(&(*origin as u64).to_le_bytes());
    }
    PackedKey {
        layout: digest(&layout),
        processor: xnnpack::processor().to_owned(),
        graph: graph_digest,
        constants: 0,
    }
}

/// Adds the weights of a section as candidates for the first runtime.
pub(crate) fn add_candidates(section: &PackedSection, subgraph: &Subgraph, cache: &WeightsCache) {
    let nodes = section.entries.iter().filter_map(|entry| {
        let node = usize::try_from(entry.node).ok()?;
        let data = define::static_data(&entry.data, section.storage()).ok()?;
        let weights = PackedWeights::new(data).ok()?;
        Some(PackedNode { node, seed: entry.seed, weights })
    });
    cache.add_candidates(subgraph, nodes);
}

/// Returns the weights that runtimes of `subgraph` have packed.
pub(crate) fn section(key: PackedKey, subgraph: &Subgraph, cache: &WeightsCache) -> PackedSection {
    let entries = cache.packed(subgraph).into_iter().filter_map(|packed| {
        let node = u32::try_from(packed.node).ok()?;
        Some(PackedEntry::new(node, packed.seed, packed.weights.into_bytes()))
    });
    PackedSection::new(key, entries.collect())
}

/// Whether a node is equal in two graphs, except for shapes of computed values, which packing does
/// not depend on.
pub(crate) fn is_alike(a: &Graph, b: &Graph, node: usize) -> bool {
    let (Some(mine), Some(theirs)) = (a.nodes.get(node), b.nodes.get(node)) else { return false };
    let values = [mine.inputs(), mine.outputs()].concat();
    mine == theirs
        && values.into_iter().all(|id| match (a.value(id), b.value(id)) {
            (Some(mine), Some(theirs)) => are_alike(mine, theirs),
            _ => false,
        })
}

fn are_alike(a: &Value, b: &Value) -> bool {
    let is_same_size = a.data.is_none() || a.dims == b.dims;
    (a.datatype, &a.quantization) == (b.datatype, &b.quantization)
        && is_same_size
        && a.has_data_of(b)
}

/// Whether two graphs differ only in first dimensions of computed values, without an effect on how
/// weights are packed.
pub(crate) fn differ_in_rows(a: &Graph, b: &Graph) -> bool {
    let depends_on_rows = a.values.iter().filter(|it| it.data.is_some()).any(|it| {
        it.datatype == Datatype::F16
            || matches!(it.datatype, Datatype::QInt8 | Datatype::QcInt8 | Datatype::QUint8)
                && xnnpack::packs_for_many_rows()
    });
    let have_alike_rows = |a: &Value, b: &Value| {
        a.dims.len() == b.dims.len()
            && a.dims.get(1..) == b.dims.get(1..)
            && (!depends_on_rows || define::has_few_rows(&a.dims) == define::has_few_rows(&b.dims))
    };
    (&a.nodes, &a.inputs, &a.outputs) == (&b.nodes, &b.inputs, &b.outputs)
        && a.values.len() == b.values.len()
        && a.values.iter().zip(&b.values).all(|(a, b)| are_alike(a, b) && have_alike_rows(a, b))
}

/// File of a graph's packed weights in a cache folder.
///
/// Its name is a digest of everything that the weights depend on, including the constants, and of
/// nothing else: graphs for other shapes use the same file. It is first written under another name,
/// so it is always complete, even if several processes write it.
#[derive(Debug)]
pub(crate) struct CacheFile {
    path: PathBuf,
    key: PackedKey,
}

impl CacheFile {
    /// The file for `graph`, which was defined as `subgraph`. Reads all constants.
    pub(crate) fn new(
        folder: &Path,
        graph: &Graph,
        subgraph: &Subgraph,
        origins: &[usize],
    ) -> Self {
        let constants = constants_digest(graph);
        let key = PackedKey { constants, ..key(packing_digest(graph), subgraph, origins) };
        Self { path: folder.join(format!("{:032x}.xnnpacked", key.digest())), key }
    }

    /// Reads the file. A damaged file is treated as a missing one.
    pub(crate) fn read(&self) -> Option<PackedSection> {
        if !self.path.exists() {
            log::info!("{}: no cached weights; packing weights", self.path.display());
            return None;
        }
        match PackedSection::open(&self.path) {
            Ok(section) if section.key == self.key => Some(section),
            Ok(_) => {
                log::warn!("{}: the file is for another graph or processor", self.path.display());
                None
            }
            Err(error) => {
                log::warn!("{error}");
                None
            }
        }
    }

    /// Writes the file. A failure only makes the next start slower.
    pub(crate) fn write(&self, subgraph: &Subgraph, cache: &WeightsCache) {
        let section = section(self.key.clone(), subgraph, cache);
        if section.entries.is_empty() {
            return;
        }
        let write = || -> Result<(), xnn_format::Error> {
            let bytes = section.to_bytes()?;
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            Ok(write_atomic(&self.path, &bytes)?)
        };
        match write() {
            Ok(()) => log::info!("{}: packed weights are kept", self.path.display()),
            Err(error) => {
                log::warn!("{}: cannot write packed weights: {error}", self.path.display())
            }
        }
    }
}
