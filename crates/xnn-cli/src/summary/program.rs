//! Summary of an ExecuTorch program.

use std::io::{self, Write};

use serde::Serialize;
use xnn_pte::{Argument, Delegate, Method, NamedConstant, Operator, PteProgram, XnnpackGraph};

use crate::output::{self, Table, list, plain, shape};

/// A whole program.
#[derive(Serialize)]
pub struct Summary {
    version: u32,
    bytes: usize,
    named_data: Vec<NamedEntry>,
    methods: Vec<MethodEntry>,
}

#[derive(Serialize)]
struct MethodEntry {
    name: String,
    inputs: Vec<ArgumentEntry>,
    outputs: Vec<ArgumentEntry>,
    delegates: Vec<DelegateEntry>,
    operators_outside: Vec<OperatorEntry>,
}

/// An input or output, without type if it is not a tensor.
#[derive(Serialize)]
struct ArgumentEntry {
    #[serde(rename = "type")]
    element: Option<String>,
    shape: Option<Vec<usize>>,
    /// Dimensions from the outermost in memory to the innermost.
    dim_order: Option<Vec<usize>>,
}

#[derive(Serialize)]
struct DelegateEntry {
    backend: String,
    payload_bytes: usize,
    calls: usize,
    /// Contents of an XNNPACK payload.
    graph: Option<GraphEntry>,
    /// Why it cannot be read.
    problem: Option<String>,
}

#[derive(Serialize)]
struct GraphEntry {
    nodes: usize,
    values: usize,
    constants: usize,
    /// Constants in the program's named data.
    named: Vec<NamedEntry>,
}

#[derive(Serialize)]
struct NamedEntry {
    key: String,
    bytes: usize,
}

#[derive(Serialize)]
struct OperatorEntry {
    name: String,
    calls: usize,
}

impl Summary {
    pub fn new(program: &PteProgram) -> Self {
        let named = program.named_data().iter();
        Self {
            version: program.version(),
            bytes: program.file_size(),
            named_data: named
                .map(|(key, data)| NamedEntry { key: key.clone(), bytes: data.len() })
                .collect(),
            methods: program.methods().iter().map(|it| MethodEntry::new(program, it)).collect(),
        }
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { version, bytes, named_data, methods } = self;
        let size = output::bytes(*bytes as u64);
        writeln!(out, "{size}: ExecuTorch program ET12, schema version {version}")?;
        writeln!(out, "named data: {}", count_and_size(named_data))?;
        methods.iter().try_for_each(|method| method.write(out))
    }
}

impl MethodEntry {
    fn new(program: &PteProgram, method: &Method) -> Self {
        let delegates = method.delegates.iter();
        Self {
            name: method.name.clone(),
            inputs: method.inputs.iter().map(ArgumentEntry::new).collect(),
            outputs: method.outputs.iter().map(ArgumentEntry::new).collect(),
            delegates: delegates.map(|it| DelegateEntry::new(program, method, it)).collect(),
            operators_outside: method.operators.iter().map(OperatorEntry::new).collect(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nmethod {}", plain(&self.name))?;
        let mut arguments = Table::new(["", "type", "shape", "order in memory"]);
        for (role, entries) in [("input", &self.inputs), ("output", &self.outputs)] {
            for (index, entry) in entries.iter().enumerate() {
                arguments.row(entry.cells(format!("{role} {index}")));
            }
        }
        arguments.write(out)?;
        writeln!(out)?;
        let mut delegates =
            Table::new(["delegate>", "backend", "payload>", "nodes>", "values>", "constants"]);
        for (index, delegate) in self.delegates.iter().enumerate() {
            delegates.row(delegate.cells(index));
        }
        delegates.write(out)?;
        for (index, delegate) in self.delegates.iter().enumerate() {
            let named = delegate.graph.iter().flat_map(|graph| &graph.named);
            for NamedEntry { key, bytes } in named {
                let size = output::bytes(*bytes as u64);
                writeln!(out, "  delegate {index} reads {}: {size}", plain(key))?;
            }
        }
        let outside: Vec<String> = self
            .operators_outside
            .iter()
            .map(|OperatorEntry { name, calls }| format!("{name} {calls}"))
            .collect();
        match outside.as_slice() {
            [] => writeln!(out, "operators outside: none"),
            outside => writeln!(out, "operators outside: {}", list(outside)),
        }
    }
}

impl ArgumentEntry {
    fn new(argument: &Argument) -> Self {
        match argument {
            Argument::Tensor(tensor) => Self {
                element: Some(tensor.element.clone()),
                shape: Some(tensor.dims.clone()),
                dim_order: Some(tensor.dim_order.clone()),
            },
            Argument::Other => Self { element: None, shape: None, dim_order: None },
        }
    }

    fn cells(&self, role: String) -> [String; 4] {
        let order = self.dim_order.iter().flatten().map(ToString::to_string);
        [
            role,
            self.element.clone().unwrap_or_else(|| "not a tensor".into()),
            self.shape.as_deref().map(shape).unwrap_or_default(),
            order.collect::<Vec<_>>().join(" "),
        ]
    }
}

impl DelegateEntry {
    fn new(program: &PteProgram, method: &Method, delegate: &Delegate) -> Self {
        let graph = delegate.is_xnnpack().then(|| program.xnnpack_graph(method, delegate));
        let (graph, problem) = match graph {
            Some(Ok(graph)) => (Some(GraphEntry::new(&graph)), None),
            Some(Err(error)) => (None, Some(error.kind().to_string())),
            None => (None, None),
        };
        Self {
            backend: delegate.backend.clone(),
            payload_bytes: delegate.payload.len(),
            calls: delegate.calls,
            graph,
            problem,
        }
    }

    fn cells(&self, index: usize) -> [String; 6] {
        let graph = |cell: fn(&GraphEntry) -> usize| {
            self.graph.as_ref().map_or_else(String::new, |graph| cell(graph).to_string())
        };
        let constants = self
            .graph
            .as_ref()
            .map(|graph| format!("{}, named: {}", graph.constants, count_and_size(&graph.named)));
        let problem = self.problem.as_ref().map(|problem| format!("cannot be read: {problem}"));
        [
            index.to_string(),
            self.backend.clone(),
            output::bytes(self.payload_bytes as u64),
            graph(|graph| graph.nodes),
            graph(|graph| graph.values),
            constants.or(problem).unwrap_or_default(),
        ]
    }
}

impl GraphEntry {
    fn new(graph: &XnnpackGraph) -> Self {
        let XnnpackGraph { blob, named, .. } = graph;
        let named = named.iter();
        Self {
            nodes: blob.graph().nodes.len(),
            values: blob.graph().values.len(),
            constants: blob.info().constant_values,
            named: named
                .map(|NamedConstant { key, size, .. }| NamedEntry {
                    key: key.clone(),
                    bytes: *size,
                })
                .collect(),
        }
    }
}

impl OperatorEntry {
    fn new(operator: &Operator) -> Self {
        Self { name: operator.name.clone(), calls: operator.calls }
    }
}

fn count_and_size(named: &[NamedEntry]) -> String {
    let bytes: usize = named.iter().map(|entry| entry.bytes).sum();
    match named.len() {
        0 => "none".into(),
        count => format!("{count} ({})", output::bytes(bytes as u64)),
    }
}
