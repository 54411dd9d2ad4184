//! Reports as JSON.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use xnn_delegate::lower::{Delegation, Report};
use xnn_delegate::{Model, Runner};

use crate::arguments::{give, new_object};
use crate::bytes::xnnd_bytes_t;
use crate::error::xnnd_error_code_t::XNND_ERROR_INTERNAL;
use crate::error::{Result, guard, xnnd_error_t};
use crate::model::{model, xnnd_model_t};
use crate::options::{or_default, xnnd_options_t};

#[derive(Serialize)]
struct Explanation {
    subgraph: usize,
    #[serde(flatten)]
    report: Report,
}

/// Explains how the model is delegated, as JSON like that of `xnn explain --json`: a summary; for each operator its types,
/// shapes, partition, or the reason why it is not delegated; and what the optimization did. The main subgraph is explained,
/// or that of the signature in `options`. The caller deletes `*out` with `xnnd_bytes_delete`.
///
/// Errors: the file is a blob; shapes contradict each other, or exceed a limit; there is no such signature.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_model_explain_json(
    model: *const xnnd_model_t,
    options: *const xnnd_options_t,
    out: *mut *mut xnnd_bytes_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place, a model and options that it has not deleted.
        let (out, model, options) =
            unsafe { (new_object(out)?, self::model(model)?, or_default(options)) };
        model.check_signature(options.signature.as_deref())?;
        let model = model.as_model("explained")?;
        let at_signature = options.signature.as_deref().map(|key| model.at_signature(key));
        let (model, subgraph) = match at_signature.transpose().map_err(xnn_delegate::Error::from)? {
            Some((model, subgraph)) => (model, subgraph),
            None => (Model::clone(model), 0),
        };
        let graph = model.subgraphs.get(subgraph).map(Arc::clone);
        let graph = graph.ok_or_else(|| xnnd_error_t::argument("the model has no subgraph"))?;
        let report = Delegation::new(&graph, &options.runner.partition)?.report();
        give(out, to_json(&Explanation { subgraph, report })?);
        Ok(())
    })
}

/// Number of delegated operators.
pub(crate) fn coverage(runner: &Runner) -> Result<xnnd_bytes_t> {
    let coverage = runner.coverage();
    to_json(&json!({
        "delegated": coverage.delegated,
        "operators": coverage.operators,
        "partitions": coverage.partitions,
        "deferred": coverage.deferred,
        "fully_delegated": coverage.is_whole(),
    }))
}

/// Times of operators; `None` if there are none.
pub(crate) fn profile(runner: &Runner) -> Result<Option<xnnd_bytes_t>> {
    let Some(timings) = runner.profile() else { return Ok(None) };
    let graph = runner.program().map(|program| program.graph());
    let origin = |node: usize| graph.and_then(|graph| graph.node_name(graph.nodes.get(node)?));
    let operators = timings.iter().map(|timing| {
        json!({
            "operator": timing.name,
            "node": timing.node,
            "origin": timing.node.and_then(origin),
            "us": timing.micros,
        })
    });
    to_json(&operators.collect::<Vec<_>>()).map(Some)
}

fn to_json(value: &impl Serialize) -> Result<xnnd_bytes_t> {
    let json = serde_json::to_vec(value);
    let json = json.map_err(|error| xnnd_error_t::new(XNND_ERROR_INTERNAL, error.to_string()))?;
    Ok(xnnd_bytes_t::new(json))
}
