//! Packed weights of a program: from its blob, a similar program, or a cache folder.

use bytes::Bytes;
use xnn_format::{PackedKey, PackedSection, graph_digest};
use xnnpack::PackedNode;

use super::{Inner, Program, ProgramOptions, Source};
use crate::packing::{self, CacheFile};

impl Inner {
    /// Key of packed weights, without the digest of the constants.
    pub(super) fn key(&self) -> PackedKey {
        let graph = self.graph_digest.unwrap_or_else(|| graph_digest(&self.graph));
        packing::key(graph, &self.subgraph, &self.origins)
    }

    /// Adds packed weights of a blob for this build and processor as candidates. Runs then read
    /// these and `read_in_place`.
    pub(super) fn use_packed(&self, source: &Source, read_in_place: &[Bytes]) -> bool {
        let Source { storage, packed: sections, pages, .. } = source;
        let Some(weights) = self.weights.as_ref().filter(|_| !sections.is_empty()) else {
            return false;
        };
        let key = self.key();
        match sections.iter().find(|section| section.key.serves(&key)) {
            Some(section) => {
                let read = read_in_place.iter().chain([section.storage()]);
                pages.isolate_gaps(storage, read.map(Bytes::as_ref));
                packing::add_candidates(section, &self.subgraph, weights);
            }
            None => {
                for PackedSection { key: other, .. } in sections {
                    let reason = if other.processor != key.processor {
                        format!("another processor ({})", other.processor)
                    } else if other.graph != key.graph {
                        "another graph".to_owned()
                    } else {
                        "another build of XNNPACK or of this library".to_owned()
                    };
                    log::info!("the blob's packed weights are for {reason}");
                }
                log::info!("packing weights");
                return false;
            }
        }
        true
    }

    /// Adds weights of the cache folder as candidates, or schedules that they are written.
    pub(super) fn use_cache(&mut self, options: &ProgramOptions) {
        let (Some(folder), Some(weights)) = (&options.cache_dir, &self.weights) else { return };
        let file = CacheFile::new(folder, &self.graph, &self.subgraph, &self.origins);
        match file.read() {
            Some(section) => packing::add_candidates(&section, &self.subgraph, weights),
            None => self.unwritten = Some(file),
        }
    }

    /// Adds weights of a program for other shapes as candidates, for nodes that are equal. Returns
    /// whether all are.
    pub(super) fn use_similar(&self, options: &ProgramOptions) -> bool {
        let Some(Program(other)) = &options.similar else { return false };
        let (Some(weights), Some(packed)) = (&self.weights, &other.weights) else { return false };
        if self.origins != other.origins {
            return false;
        }
        // Weights of layers with few rows may be packed differently.
        let kinds = self.subgraph.kinds().zip(other.subgraph.kinds());
        let is_same_kind: Vec<bool> = kinds.map(|(mine, theirs)| mine == theirs).collect();
        let same = |packed: &PackedNode| {
            is_same_kind.get(packed.node) == Some(&true)
                && (self.origins.get(packed.node))
                    .is_some_and(|&node| packing::is_alike(&self.graph, &other.graph, node))
        };
        let mut nodes = packed.packed(&other.subgraph);
        let all = nodes.len();
        nodes.retain(same);
        let found = !nodes.is_empty() && nodes.len() == all;
        weights.add_candidates(&self.subgraph, nodes);
        found
    }

    /// Writes packed weights to the cache folder.
    pub(super) fn keep_packed(&self) {
        if let (Some(file), Some(weights)) = (&self.unwritten, &self.weights) {
            file.write(&self.subgraph, weights);
        }
    }
}
