//! The delegate object that TFLite holds, and its work on an interpreter's graph.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xnn::lower::{analyze, reanalyze};
use xnn_lower::explain::Report;
use xnn_lower::{Decision, Partitioning, WhyNot, partition_grouped};
use xnn_model::{Inferred, Subgraph};
use xnn_runtime::{ProgramOptions, Session, ThreadPool, thread_pool};

use crate::abi::{
    ALLOW_DYNAMIC_TENSORS, ERROR, OK, PaddedRegistration, TfLiteContext, TfLiteDelegate,
    TfLiteDelegateParams, TfLiteNode, TfLiteRegistration, TfLiteStatus, ints,
};
use crate::constants::Constants;
use crate::context::Context;
use crate::delegated_partition::DelegatedPartition;
use crate::error::{Error, Result, panic_message};
use crate::explain::Explainer;
use crate::graph;
use crate::hosted_kernels;
use crate::kernel::Kernel;
use crate::options::Options;
use crate::placeholders::enlarged;
use crate::programs::Key;
use crate::sessions::Sessions;

/// Object behind TFLite's pointer to the delegate.
///
/// Reference-counted: the creator and every kernel hold a reference each, so that the delegate and
/// its interpreters can be destroyed in any order.
#[repr(C)]
pub(crate) struct Delegate {
    /// The first field, so that pointers to both are equal.
    raw: Raw,
    /// Reserved for interpreters whose structure is longer.
    spare: [u64; 8],
    options: Options,
    explainer: Option<Explainer>,
    /// Kernels that TFLite is about to request, by the address of their context.
    pending: Mutex<HashMap<usize, Vec<Pending>>>,
}

/// TFLite's view of a delegate; immutable.
#[repr(transparent)]
struct Raw(TfLiteDelegate);

// SAFETY: its pointers are null or point to functions, and it is never written to.
unsafe impl Send for Raw {}
// SAFETY: as for `Send`.
unsafe impl Sync for Raw {}

/// Kernel whose node does not exist yet.
struct Pending {
    /// The interpreter's indices of the nodes, sorted.
    nodes: Vec<c_int>,
    kernel: Kernel,
}

/// The `user_data` of a node.
struct NodeData {
    kernel: Result<Kernel>,
    /// Keeps the delegate alive.
    _delegate: Arc<Delegate>,
}

impl Pending {
    /// Kernel for `operators`, which are positions in `plan`.
    fn new(plan: &[c_int], operators: &[usize], kernel: Kernel) -> Self {
        let mut nodes: Vec<c_int> =
            operators.iter().filter_map(|&i| plan.get(i).copied()).collect();
        nodes.sort_unstable();
        Self { nodes, kernel }
    }
}

impl Delegate {
    /// Creates a delegate, to be destroyed with [`Delegate::destroy`].
    pub(crate) fn create(options: Options) -> *mut TfLiteDelegate {
        let delegate = Arc::new(Self {
            raw: Raw(TfLiteDelegate {
                data: ptr::null_mut(),
                prepare: Some(prepare_delegate),
                copy_from_buffer_handle: ptr::null_mut(),
                copy_to_buffer_handle: ptr::null_mut(),
                free_buffer_handle: ptr::null_mut(),
                flags: ALLOW_DYNAMIC_TENSORS,
                opaque_delegate_builder: ptr::null_mut(),
            }),
            spare: [0; 8],
            explainer: options.explain.clone().map(Explainer::new),
            options,
            pending: Mutex::default(),
        });
        Arc::into_raw(delegate).cast::<TfLiteDelegate>().cast_mut()
    }

    /// Drops the creator's reference.
    ///
    /// # Safety
    /// `raw` is null, or came from [`Delegate::create`] and was not destroyed before.
    pub(crate) unsafe fn destroy(raw: *mut TfLiteDelegate) {
        if !raw.is_null() {
            // SAFETY: guaranteed by the caller; `raw` is the first field.
            drop(unsafe { Arc::from_raw(raw.cast_const().cast::<Self>()) });
        }
    }

    /// Returns another reference to the delegate behind TFLite's pointer.
    ///
    /// # Safety
    /// `raw` is null, or came from [`Delegate::create`] and is alive.
    unsafe fn share(raw: *mut TfLiteDelegate) -> Option<Arc<Self>> {
        let raw = raw.cast_const().cast::<Self>();
        if raw.is_null() {
            return None;
        }
        // SAFETY: guaranteed by the caller; `raw` is the first field.
        unsafe {
            Arc::increment_strong_count(raw);
            Some(Arc::from_raw(raw))
        }
    }

    /// Partitions the interpreter's graph, compiles the partitions, and replaces their nodes.
    fn prepare(self: &Arc<Self>, context: &Context) -> Result<()> {
        let plan = context.execution_plan()?;
        let mut constants = Constants::new();
        let graph = Arc::new(graph::subgraph(context, &plan, &mut constants)?);
        let program = ProgramOptions { pages: constants.pages(), ..self.options.program() };
        let key = Key::new(&graph, program.cache_dir.clone());
        let options = &self.options.partition;
        let earlier = key.as_ref().and_then(|key| key.analysis(&graph));
        let analyzed = |graph: Arc<Subgraph>| match &earlier {
            Some(earlier) => reanalyze(graph, options, earlier),
            None => analyze(graph, options),
        };
        // Callers may resize inputs later, and must if layers produce empty outputs for these
        // sizes.
        let possible = |inferred: Inferred| match enlarged(&graph, &inferred.subgraph) {
            Some(larger) => analyzed(larger),
            None => Ok(inferred),
        };
        let inferred = match analyzed(Arc::clone(&graph)).and_then(possible) {
            Ok(inferred) => inferred,
            Err(error) => {
                log::warn!("no operator is delegated: {error}");
                return Ok(());
            }
        };
        let graph = Arc::new(inferred);
        if let Some(key) = &key {
            key.keep_analysis(&graph);
        }
        let mut sessions = Sessions {
            threads: self.threads(context)?,
            partition: self.options.partition.clone(),
            key,
            program,
            _files: constants.files(),
        };
        let (partitioning, compiled) = self.partition(context, &plan, &graph, &mut sessions)?;
        check_stored(&partitioning)?;
        let mut batches = vec![Vec::new()];
        for (partition, session) in partitioning.partitions.iter().zip(compiled) {
            let delegated = DelegatedPartition::new(&graph, partition);
            let kernel = Kernel::new(delegated, session.into(), &sessions);
            let pending = Pending::new(&plan, &partition.operators, kernel);
            if partition.is_embedded {
                // TFLite would merge it with its neighbours, so it is claimed separately.
                batches.push(vec![pending]);
            } else {
                batches[0].push(pending);
            }
        }
        let mut report = Report::new(&graph.subgraph, &partitioning);
        for (operator, kernel) in hosted_kernels::kernels(&graph, &partitioning, &sessions) {
            batches.push(vec![Pending::new(&plan, &[operator], kernel)]);
            report.set_hosted(operator);
        }
        log::info!("{}", report.summary);
        if let Some(explainer) = &self.explainer {
            explainer.explain(&report)?;
        }
        batches.into_iter().try_for_each(|kernels| self.replace(context, kernels))
    }

    /// Has TFLite replace nodes with these kernels.
    fn replace(self: &Arc<Self>, context: &Context, kernels: Vec<Pending>) -> Result<()> {
        let nodes: Vec<c_int> = kernels.iter().flat_map(|kernel| &kernel.nodes).copied().collect();
        if nodes.is_empty() {
            return Ok(());
        }
        self.pending().insert(context.address(), kernels);
        let raw = Arc::as_ptr(self).cast::<TfLiteDelegate>().cast_mut();
        // SAFETY: the registration's functions follow TFLite's contract, and the pointer is the one
        // that `share` expects.
        let replaced = unsafe { context.replace(&nodes, registration(), raw) };
        self.pending().remove(&context.address());
        replaced
    }

    /// Partitions with the groups that TFLite will form, so that the compiled partitions are the
    /// requested ones.
    fn partition(
        &self,
        context: &Context,
        plan: &[c_int],
        inferred: &Inferred,
        sessions: &mut Sessions,
    ) -> Result<(Partitioning, Vec<Session>)> {
        let mut failure = None;
        let group = |_: &Subgraph, claimed: &[bool]| {
            let nodes: Vec<c_int> = plan
                .iter()
                .zip(claimed)
                .filter(|(_, claimed)| **claimed)
                .map(|(&n, _)| n)
                .collect();
            let subsets = context.preview(&nodes).unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            });
            let position = |node: &c_int| plan.iter().position(|other| other == node);
            subsets
                .iter()
                .map(|subset| {
                    let mut group: Vec<usize> = subset.nodes.iter().filter_map(position).collect();
                    group.sort_unstable();
                    group
                })
                .collect()
        };
        let result = partition_grouped(inferred, &self.options.partition, sessions, group)?;
        failure.map_or(Ok(result), Err)
    }

    /// Thread pool of all kernels of one interpreter; `None` to compute on the calling thread only.
    fn threads(&self, context: &Context) -> Result<Option<Arc<ThreadPool>>> {
        let chosen = self.options.num_threads.map(Into::into);
        let threads = chosen.or_else(|| context.recommended_threads()).unwrap_or(1);
        Ok(thread_pool(threads)?)
    }

    /// Removes and returns the kernel for these nodes, which TFLite requests during
    /// [`Delegate::prepare`].
    fn take(&self, context: &Context, nodes: &[c_int]) -> Result<Kernel> {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        let mut pending = self.pending();
        let found = pending
            .get_mut(&context.address())
            .and_then(|all| Some(all.swap_remove(all.iter().position(|p| p.nodes == nodes)?)));
        found.map(|pending| pending.kernel).ok_or(Error::UnknownNodes(nodes))
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<usize, Vec<Pending>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails if an operator holds a graph that cannot be used: the interpreter has no kernel for it.
fn check_stored(partitioning: &Partitioning) -> Result<()> {
    for (operator, decision) in partitioning.decisions.iter().enumerate() {
        if let Decision::NotDelegated(why @ WhyNot::EmbeddedGraph { .. }) = decision {
            return Err(Error::Stored { operator, why: why.clone() });
        }
    }
    Ok(())
}

fn registration() -> PaddedRegistration {
    PaddedRegistration {
        registration: TfLiteRegistration {
            init: Some(init),
            free: Some(free),
            prepare: Some(prepare),
            invoke: Some(invoke),
            profiling_string: ptr::null_mut(),
            builtin_code: 0,
            custom_name: c"XnnDelegate".as_ptr(),
            version: 1,
            registration_external: ptr::null_mut(),
            async_kernel: ptr::null_mut(),
            inplace_operator: 0,
        },
        spare: [0; 8],
    }
}

unsafe extern "C" fn prepare_delegate(
    context: *mut TfLiteContext,
    delegate: *mut TfLiteDelegate,
) -> TfLiteStatus {
    // SAFETY: TFLite passes its context and the delegate that it was given.
    unsafe {
        guard(context, |context| match Delegate::share(delegate) {
            Some(delegate) => delegate.prepare(context),
            None => Err(Error::NoKernel),
        })
    }
}

/// Creates a node's `user_data`. Failures are reported by `prepare`, since the value that `init`
/// must return for a failure differs between versions of TFLite.
unsafe extern "C" fn init(
    context: *mut TfLiteContext,
    params: *const c_char,
    _length: usize,
) -> *mut c_void {
    let make = || {
        // SAFETY: TFLite passes its context, and these params for kernels of delegates; the
        // delegate in them is the one that `replace` was called with.
        unsafe {
            let context = Context::new(context)?;
            let params = params.cast::<TfLiteDelegateParams>().as_ref()?;
            let delegate = Delegate::share(params.delegate)?;
            let kernel = delegate.take(&context, ints(params.nodes_to_replace));
            Some(Box::new(NodeData { kernel, _delegate: delegate }))
        }
    };
    let data = catch_unwind(AssertUnwindSafe(make)).ok().flatten();
    data.map_or(ptr::null_mut(), |data| Box::into_raw(data).cast())
}

unsafe extern "C" fn free(_context: *mut TfLiteContext, data: *mut c_void) {
    if data.is_null() {
        return;
    }
    // SAFETY: TFLite passes the pointer that `init` returned, once.
    let data = unsafe { Box::from_raw(data.cast::<NodeData>()) };
    // A panic cannot be reported to anyone.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(data)));
}

unsafe extern "C" fn prepare(context: *mut TfLiteContext, node: *mut TfLiteNode) -> TfLiteStatus {
    // SAFETY: TFLite passes its context and a node whose data `init` created.
    unsafe { guard(context, |context| kernel(node)?.prepare(context)) }
}

pub(crate) unsafe extern "C" fn invoke(
    context: *mut TfLiteContext,
    node: *mut TfLiteNode,
) -> TfLiteStatus {
    // SAFETY: as in `prepare`.
    unsafe { guard(context, |context| kernel(node)?.invoke(context)) }
}

/// Returns the kernel of a node.
///
/// # Safety
/// `node` is null, or a node of this delegate that TFLite is calling for, and no other call for it
/// is in progress.
pub(crate) unsafe fn kernel<'a>(node: *mut TfLiteNode) -> Result<&'a mut Kernel> {
    // SAFETY: guaranteed by the caller: `user_data` is what `init` returned.
    let data = unsafe { node.as_ref().and_then(|node| node.user_data.cast::<NodeData>().as_mut()) };
    let Some(data) = data else { return Err(Error::NoKernel) };
    data.kernel.as_mut().map_err(|error| Error::Init(error.to_string()))
}

/// Runs `body`, and converts errors and panics to a status and a message.
///
/// # Safety
/// `context` is null or the context of a TFLite interpreter.
pub(crate) unsafe fn guard(
    context: *mut TfLiteContext,
    body: impl FnOnce(&Context) -> Result<()>,
) -> TfLiteStatus {
    // SAFETY: guaranteed by the caller.
    let Some(context) = (unsafe { Context::new(context) }) else { return ERROR };
    match catch_unwind(AssertUnwindSafe(|| body(&context))) {
        Ok(Ok(())) => OK,
        Ok(Err(error)) => {
            context.report(&error.to_string());
            ERROR
        }
        Err(panic) => {
            context.report(&panic_message(panic.as_ref()));
            ERROR
        }
    }
}
