//! Conversion of models to blobs, and to models that hold blobs.

mod blob;
mod options;
mod partial;

use xnn_format::Graph;
use xnn_model::Model;

use crate::delegation::{Delegation, main_subgraph};
use crate::description::Description;
use crate::error::Error;
pub use blob::pack;
use blob::write_blob;
pub use options::{ConvertOptions, Converted, Source};

/// Converts a fully delegated model to a blob, and another model to a model of the same format in which blobs replace the
/// partitions.
///
/// A blob has one entry point. A model with signatures for several subgraphs is converted like a partially delegated model,
/// unless `options.require_full` is set or `options.compat` names other readers.
///
/// ```
/// use std::path::Path;
/// use xnn_delegate::{ConvertOptions, Converted, Model, Source, convert};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_int8.tflite");
/// let source = Source::of_file(Path::new(path))?;
/// let converted = convert(&Model::open(path)?, &source, &ConvertOptions::default())?;
/// assert!(matches!(converted, Converted::Whole(_)));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Incomplete`] with a reason for each operator that is not delegated, in these two cases or if none is delegated;
/// [`Error::Format`] if `options.compat` does not have a node of a graph;
/// [`Error::Model`] if the model cannot be written.
pub fn convert(
    model: &Model,
    source: &Source,
    options: &ConvertOptions,
) -> Result<Converted, Error> {
    let options = &options.for_readers();
    let delegation = Delegation::new(main_subgraph(model)?, &options.partition)?;
    let one_entry = model.signatures.iter().all(|signature| signature.subgraph == 0);
    match delegation.whole() {
        Ok(program) if one_entry || options.require_full => {
            let mut graph = Graph::clone(program.graph());
            Description::attach(model, &mut graph)?;
            Ok(Converted::Whole(write_blob(&graph, source, options)?))
        }
        Err(incomplete) if options.require_full => Err(incomplete.into()),
        _ => partial::convert(model, delegation, source, options).map(Converted::Partial),
    }
}
