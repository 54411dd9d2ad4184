//! Constants that live outside of a file.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Where the bytes of named constants come from.
///
/// ExecuTorch since 0.6 keeps constants in the program around the payload and
/// stores only their names in it.
pub trait ConstantSource {
    /// The bytes that go by `key`, exactly; `None` where there are none.
    fn get(&self, key: &str) -> Option<Bytes>;
}

/// No constants at all.
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

/// A folder with a file for each key.
#[derive(Clone, Debug)]
pub struct ConstantFolder(PathBuf);

impl ConstantFolder {
    /// Looks into `folder` when asked.
    #[must_use]
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self(folder.as_ref().to_owned())
    }
}

impl ConstantSource for ConstantFolder {
    fn get(&self, key: &str) -> Option<Bytes> {
        // A key is a digest with a prefix; a file must not name paths.
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
