//! Sources of constants stored outside of a blob.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// A source of named constants.
///
/// Since 0.6, ExecuTorch stores constants in the program around the payload, and only their names
/// in the payload.
pub trait ConstantSource {
    /// Returns the bytes with this key; `None` if the source does not have the key.
    fn get(&self, key: &str) -> Option<Bytes>;
}

/// A source without constants.
impl ConstantSource for () {
    fn get(&self, _key: &str) -> Option<Bytes> {
        None
    }
}

impl<S: BuildHasher> ConstantSource for HashMap<String, Bytes, S> {
    fn get(&self, key: &str) -> Option<Bytes> {
        HashMap::get(self, key).cloned()
    }
}

impl ConstantSource for BTreeMap<String, Bytes> {
    fn get(&self, key: &str) -> Option<Bytes> {
        BTreeMap::get(self, key).cloned()
    }
}

/// A folder with one file per key.
#[derive(Clone, Debug)]
pub struct ConstantFolder(PathBuf);

impl ConstantFolder {
    /// A source that reads files in `folder` on request.
    #[must_use]
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self(folder.as_ref().to_owned())
    }
}

impl ConstantSource for ConstantFolder {
    fn get(&self, key: &str) -> Option<Bytes> {
        // Keys are digests with a prefix. A key must not become a path.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        if key.is_empty() || !key.chars().all(plain) {
            return None;
        }
        let path = self.0.join(key);
        match xnn_file::read(&path) {
            Ok(bytes) => Some(bytes.into()),
            Err(error) => {
                log::warn!("{}: {error}", path.display());
                None
            }
        }
    }
}
