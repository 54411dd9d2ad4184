//! From a verified flatbuffer to the representation, written once for both schemas.

use bytes::Bytes;
use flatbuffers::{Follow, Vector};
use log::Level;

use crate::diagnostics::Notes;
use crate::error::Error;
use crate::limits::ModelLimits;
use crate::metadata::AssociatedFiles;
use crate::op::Op;
use crate::types::{DType, Quantization};

/// The operator with this code and default options.
///
/// Negative codes are Circle's own, codes from 206 TFLite's own: `own` says
/// whether the dialect has the code. A code outside the table stays as data.
pub(super) fn op_from_code(code: i32, custom: &str, own: bool) -> Op {
    if code == crate::op::CUSTOM_CODE {
        return Op::Custom(crate::op::CustomOptions {
            code: custom.to_owned(),
            options: Bytes::new(),
        });
    }
    Op::from_code(code).filter(|_| own).unwrap_or(Op::Unknown { code })
}

/// The code of an operator: the larger of both fields, as TFLite takes it. Older files have the byte-sized one alone,
/// some writers fill in the wide one alone; Circle's own codes are negative.
pub(super) fn opcode(deprecated: i8, wide: i32) -> i32 {
    let narrow = i32::from(deprecated);
    if narrow < 0 { narrow } else { narrow.max(wide) }
}

/// A file, and how far its bytes stand from where the model's author put them.
pub(crate) struct File {
    bytes: Bytes,
    shift: u64,
    notes: Notes,
}

impl File {
    /// A file as it is.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, shift: 0, notes: Notes::default() }
    }

    /// A copy with everything behind the root offset moved by 4 bytes, so that
    /// 8-byte numbers that all stood 4 bytes off are aligned. (Some metadata
    /// writers leave them so.) All other offsets are relative and stay valid.
    pub(crate) fn shifted(&self) -> Option<Self> {
        const SHIFT: u32 = 4;
        let (root, rest) = self.bytes.split_first_chunk::<4>()?;
        let root = u32::from_le_bytes(*root).checked_add(SHIFT)?;
        let identifier = rest.get(..4)?;
        let bytes = [&root.to_le_bytes(), identifier, rest].concat();
        let notes = Notes::default();
        notes.add(
            Level::Info,
            "its 8-byte numbers are aligned to 4 bytes: read from a copy, moved by 4",
        );
        Some(Self { bytes: bytes.into(), shift: SHIFT.into(), notes })
    }

    /// What was odd about it.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// All bytes, root offset first.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A view of bytes that are part of this file.
    pub(super) fn view(&self, bytes: &[u8]) -> Bytes {
        self.bytes.slice_ref(bytes)
    }

    /// The archive at the end; a damaged one is as good as none.
    pub(super) fn associated_files(&self, limits: &ModelLimits) -> AssociatedFiles {
        AssociatedFiles::at_end_of(&self.bytes, limits).unwrap_or_else(|error| {
            self.notes.add(Level::Warn, format!("the files at its end are left out: {error}"));
            AssociatedFiles::default()
        })
    }

    /// Notes a quantized dimension that was read as another than the file has.
    pub(super) fn note_axis<'a>(
        &self,
        read: Option<&Quantization>,
        written: i32,
        tensor: impl FnOnce() -> (usize, &'a str),
    ) {
        match read {
            Some(&Quantization::PerAxis { axis, .. }) if i32::try_from(axis) != Ok(written) => {
                let (index, name) = tensor();
                let what =
                    format!("quantized dimension {written} of a single one, taken as {axis}");
                self.notes.add_at(Level::Info, format!("tensor {index} ({name:?})"), what);
            }
            _ => {}
        }
    }

    /// Bytes that lie at `offset` of the file instead of inside the flatbuffer.
    pub(super) fn outside(&self, offset: u64, size: u64) -> Result<Bytes, Error> {
        let range = || {
            let start = usize::try_from(offset.checked_add(self.shift)?).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            (end <= self.bytes.len()).then_some(start..end)
        };
        range().map(|r| self.bytes.slice(r)).ok_or_else(|| {
            Error::invalid(format!(
                "its data ({size} bytes at offset {offset}) reaches beyond the end of the file"
            ))
        })
    }
}

/// A tensor's shape, and its signature with -1 for what may vary.
type Dimensions = (Option<Vec<usize>>, Option<Vec<i32>>);

/// The shape, and the dimensions that may vary. A dimension of -1 in the shape
/// itself is the older way to say so.
pub(super) fn dimensions(
    shape: Option<Vector<'_, i32>>,
    signature: Option<Vector<'_, i32>>,
    has_rank: bool,
) -> Result<Dimensions, Error> {
    let varies = |dims: &Vector<'_, i32>| dims.iter().any(|d| d == -1);
    let signature = signature.filter(varies).or(shape.filter(varies));
    if signature.is_some_and(|s| shape.is_some_and(|shape| s.len() != shape.len())) {
        return Err(Error::invalid("its shape and its shape signature differ in rank"));
    }
    let shape = match shape {
        Some(dims) if varies(&dims) => None,
        Some(dims) => Some(indices(Some(dims), "its shape")?),
        None => has_rank.then(Vec::new),
    };
    Ok((shape, signature.map(|s| s.iter().collect())))
}

/// Whether the data of a constant without a shape is one element: writers leave
/// out the empty shape of a scalar.
pub(super) fn is_scalar(dtype: DType, data: Option<&Bytes>) -> bool {
    data.is_some_and(|data| dtype.byte_size(1) == Some(data.len()))
}

/// A vector's elements, none if it is absent.
pub(super) fn items<'a, T: Follow<'a> + 'a>(
    vector: Option<Vector<'a, T>>,
) -> impl ExactSizeIterator<Item = T::Inner> {
    vector.unwrap_or_default().into_iter()
}

/// All of them, in memory for as many: where one may fail, `collect` does not ask how many there are.
pub(super) fn all<T>(
    items: impl ExactSizeIterator<Item = Result<T, Error>>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        all.push(item?);
    }
    Ok(all)
}

/// The element at `index` of a vector, if both are there.
pub(super) fn item<'a, T: Follow<'a> + 'a>(
    vector: Option<Vector<'a, T>>,
    index: u32,
) -> Option<T::Inner> {
    let index = usize::try_from(index).ok()?;
    vector.filter(|v| index < v.len()).map(|v| v.get(index))
}

/// Indices that may not be negative.
pub(super) fn indices(vector: Option<Vector<'_, i32>>, what: &str) -> Result<Vec<usize>, Error> {
    all(items(vector).map(|i| {
        usize::try_from(i).map_err(|_| Error::invalid(format!("{what} has the negative entry {i}")))
    }))
}

/// Scales and zero points of the ordinary kinds: one pair, or one per slice
/// along `axis`.
pub(super) fn affine(
    scales: Vec<f32>,
    mut zero_points: Vec<i64>,
    axis: i32,
    shape: Option<&[usize]>,
) -> Result<Option<Quantization>, Error> {
    let slices = scales.len();
    if let ([scale], [] | [_]) = (&*scales, &*zero_points) {
        let zero_point = zero_points.first().copied().unwrap_or(0);
        return Ok(Some(Quantization::PerTensor { scale: *scale, zero_point }));
    }
    if slices == 0 {
        return Ok(None);
    }
    match zero_points.len() {
        0 => {}
        1 => zero_points.resize(slices, zero_points[0]),
        n if n == slices => {}
        n => return Err(Error::invalid(format!("{slices} scales but {n} zero points"))),
    }
    Ok(Some(Quantization::PerAxis {
        scales: scales.into(),
        zero_points: zero_points.into(),
        axis: quantized_axis(axis, slices, shape)?,
    }))
}

/// The quantized dimension, checked where the shape is known.
fn quantized_axis(axis: i32, slices: usize, shape: Option<&[usize]>) -> Result<usize, Error> {
    let index = usize::try_from(axis).ok();
    match (index, shape) {
        (Some(axis), None) => return Ok(axis),
        (Some(axis), Some(shape)) if shape.get(axis) == Some(&slices) => return Ok(axis),
        // No other is there; the reader notes it.
        (_, Some(&[only])) if only == slices => return Ok(0),
        _ => {}
    }
    Err(Error::invalid(format!(
        "{slices} scales along dimension {axis} do not fit the shape {:?}",
        shape.unwrap_or_default()
    )))
}

/// Writes `read` for the module's `schema`.
///
/// The module adds what its schema alone has: `own_code`, `unusable`,
/// `check_layout` and `detailed_quantization`.
macro_rules! reader {
    ($dialect:expr) => {
        /// Reads a verified file.
        pub(crate) fn read(file: &File, limits: &ModelLimits) -> Result<Model> {
            let bytes = file.bytes();
            let root = schema::root_as_model_with_opts(&limits.verifier(bytes.len()), bytes)?;
            check_version(root.version())?;
            let reader = Reader { file, codes: root.operator_codes(), buffers: root.buffers() };
            let subgraphs = all(items(root.subgraphs())
                .enumerate()
                .map(|(i, s)| reader.subgraph(s).map(Arc::new).map_err(|e| e.in_subgraph(i))))?;
            Ok(Model {
                dialect: $dialect,
                version: root.version(),
                description: root.description().unwrap_or_default().to_owned(),
                subgraphs,
                signatures: all(items(root.signature_defs()).map(signature))?,
                metadata: all(items(root.metadata()).map(|m| reader.metadata(m)))?,
                files: file.associated_files(limits),
                pages: xnn_file::Pages::default(),
            })
        }

        /// The parts of the file that everything else points to.
        struct Reader<'a> {
            file: &'a File,
            codes: Option<Vector<'a, ForwardsUOffset<schema::OperatorCode<'a>>>>,
            buffers: Option<Vector<'a, ForwardsUOffset<schema::Buffer<'a>>>>,
        }

        impl<'a> Reader<'a> {
            fn subgraph(&self, graph: schema::SubGraph<'a>) -> Result<Subgraph> {
                check_layout(&graph)?;
                let tensors = all(items(graph.tensors()).enumerate().map(|(i, t)| {
                    self.tensor(i, t).map_err(|e| e.in_tensor(i, t.name().unwrap_or_default()))
                }))?;
                let operators =
                    all(items(graph.operators()).enumerate().map(|(i, op)| self.operator(i, op)))?;
                let mut subgraph = Subgraph {
                    name: graph.name().unwrap_or_default().to_owned(),
                    tensors,
                    inputs: indices(graph.inputs(), "the list of inputs")?,
                    outputs: indices(graph.outputs(), "the list of outputs")?,
                    operators,
                };
                subgraph.mark_empty_constants();
                Ok(subgraph)
            }

            fn tensor(&self, index: usize, tensor: schema::Tensor<'a>) -> Result<Tensor> {
                let (shape, shape_signature) =
                    dimensions(tensor.shape(), tensor.shape_signature(), tensor.has_rank())?;
                let quantization = match tensor.quantization() {
                    Some(q) => {
                        let read = quantization(&q, shape.as_deref())?;
                        let place = || (index, tensor.name().unwrap_or_default());
                        self.file.note_axis(read.as_ref(), q.quantized_dimension(), place);
                        read
                    }
                    None => None,
                };
                let sparsity = tensor.sparsity().map(sparsity).transpose()?;
                let dtype = DType::from_wire(tensor.type_())?;
                let data = self.buffer(tensor.buffer())?;
                let is_open = !tensor.has_rank() && data.is_none();
                let has_no_dimensions = shape.as_deref().is_none_or(<[usize]>::is_empty);
                let open_rank = (is_open && has_no_dimensions).then(Vec::new);
                Ok(Tensor {
                    name: tensor.name().unwrap_or_default().to_owned(),
                    dtype,
                    shape: shape.or_else(|| is_scalar(dtype, data.as_ref()).then(Vec::new)),
                    shape_signature: shape_signature.or(open_rank),
                    quantization,
                    data,
                    is_variable: tensor.is_variable(),
                    sparsity: sparsity.map(Arc::new),
                    unusable: unusable(&tensor),
                })
            }

            /// The bytes of a buffer, `None` if it holds none.
            fn buffer(&self, index: u32) -> Result<Option<Bytes>> {
                let Some(buffer) = item(self.buffers, index) else {
                    // Buffer 0 is the empty one by convention, present or not.
                    return match index {
                        0 => Ok(None),
                        _ => Err(Error::invalid(format!(
                            "its data is buffer {index}, but the file has {} buffers",
                            items(self.buffers).len()
                        ))),
                    };
                };
                match buffer.data() {
                    Some(data) if !data.is_empty() => Ok(Some(self.file.view(data.bytes()))),
                    _ if buffer.offset() > 1 => {
                        self.file.outside(buffer.offset(), buffer.size()).map(Some)
                    }
                    _ => Ok(None),
                }
            }

            fn operator(
                &self,
                position: usize,
                operator: schema::Operator<'a>,
            ) -> Result<Operator> {
                let (op, version) =
                    self.op(&operator).map_err(|e| e.in_operator(position, "unknown operator"))?;
                let name = op.name().to_owned();
                self.operator_body(op, version, &operator)
                    .map_err(|e| e.in_operator(position, name))
            }

            /// The operator with default options, and its version.
            fn op(&self, operator: &schema::Operator<'a>) -> Result<(Op, u32)> {
                let index = operator.opcode_index();
                let code = item(self.codes, index).ok_or_else(|| {
                    Error::invalid(format!("operator code {index} is not in the file"))
                })?;
                let value = opcode(code.deprecated_builtin_code(), code.builtin_code().0);
                let custom = code.custom_code().unwrap_or_default();
                let version = u32::try_from(code.version())
                    .map_err(|_| Error::invalid(format!("negative version {}", code.version())))?;
                Ok((op_from_code(value, custom, own_code(value)), version))
            }

            fn operator_body(
                &self,
                op: Op,
                version: u32,
                operator: &schema::Operator<'a>,
            ) -> Result<Operator> {
                let op = match op {
                    Op::Custom(custom) => Op::Custom(CustomOptions {
                        options: self.custom_options(operator)?,
                        ..custom
                    }),
                    op => read_options(op, operator)?,
                };
                let inputs = all(items(operator.inputs()).map(|i| match i {
                    -1 => Ok(None),
                    i => usize::try_from(i)
                        .map(Some)
                        .map_err(|_| Error::invalid(format!("input tensor {i}"))),
                }))?;
                Ok(Operator {
                    op,
                    version,
                    inputs,
                    outputs: indices(operator.outputs(), "the list of outputs")?,
                    intermediates: indices(operator.intermediates(), "the list of intermediates")?,
                })
            }

            fn custom_options(&self, operator: &schema::Operator<'a>) -> Result<Bytes> {
                let offset = operator.large_custom_options_offset();
                match operator.custom_options() {
                    Some(options) => Ok(self.file.view(options.bytes())),
                    None if offset > 1 => {
                        self.file.outside(offset, operator.large_custom_options_size())
                    }
                    None => Ok(Bytes::new()),
                }
            }

            fn metadata(&self, metadata: schema::Metadata<'a>) -> Result<Metadata> {
                let name = metadata.name().unwrap_or_default().to_owned();
                let data = self
                    .buffer(metadata.buffer())
                    .map_err(|e| Error::invalid(format!("metadata {name:?}: {e}")))?
                    .unwrap_or_default();
                Ok(Metadata { name, data })
            }
        }

        fn quantization(
            quantization: &schema::QuantizationParameters<'_>,
            shape: Option<&[usize]>,
        ) -> Result<Option<Quantization>> {
            if let Some(details) = detailed_quantization(quantization)? {
                return Ok(Some(details));
            }
            affine(
                items(quantization.scale()).collect(),
                items(quantization.zero_point()).collect(),
                quantization.quantized_dimension(),
                shape,
            )
        }

        fn sparsity(sparsity: schema::SparsityParameters<'_>) -> Result<Sparsity> {
            Ok(Sparsity {
                traversal_order: indices(sparsity.traversal_order(), "the traversal order")?,
                block_map: indices(sparsity.block_map(), "the block map")?,
                dimensions: all(items(sparsity.dim_metadata()).map(sparse_dimension))?,
            })
        }

        fn sparse_dimension(dimension: schema::DimensionMetadata<'_>) -> Result<SparseDimension> {
            match dimension.format() {
                schema::DimensionType::DENSE => {
                    let size = dimension.dense_size();
                    usize::try_from(size)
                        .map(|size| SparseDimension::Dense { size })
                        .map_err(|_| Error::invalid(format!("sparse dimension of size {size}")))
                }
                schema::DimensionType::SPARSE_CSR => Ok(SparseDimension::Csr {
                    segments: sparse_indices!(dimension, array_segments)?,
                    indices: sparse_indices!(dimension, array_indices)?,
                }),
                other => {
                    Err(Error::invalid(format!("sparse dimension of unknown format {}", other.0)))
                }
            }
        }

        fn signature(signature: schema::SignatureDef<'_>) -> Result<Signature> {
            let key = signature.signature_key().unwrap_or_default().to_owned();
            let tensors = |map| {
                all(items(map).map(|entry: schema::TensorMap<'_>| {
                    let name = entry.name().unwrap_or_default().to_owned();
                    Ok((name, usize::from_wire(entry.tensor_index())?))
                }))
            };
            Ok(Signature {
                subgraph: usize::from_wire(signature.subgraph_index())?,
                inputs: tensors(signature.inputs())?,
                outputs: tensors(signature.outputs())?,
                key,
            })
        }
    };
}

/// The indices of a sparse dimension, whatever their width.
macro_rules! sparse_indices {
    ($dimension:expr, array_segments) => {
        sparse_indices!(@widths $dimension, array_segments_as_uint_8_vector,
            array_segments_as_uint_16_vector, array_segments_as_int_32_vector)
    };
    ($dimension:expr, array_indices) => {
        sparse_indices!(@widths $dimension, array_indices_as_uint_8_vector,
            array_indices_as_uint_16_vector, array_indices_as_int_32_vector)
    };
    (@widths $dimension:expr, $bytes:ident, $shorts:ident, $ints:ident) => {
        if let Some(v) = $dimension.$bytes() {
            Ok(items(v.values()).map(usize::from).collect())
        } else if let Some(v) = $dimension.$shorts() {
            Ok(items(v.values()).map(usize::from).collect())
        } else if let Some(v) = $dimension.$ints() {
            indices(v.values(), "a sparse dimension")
        } else {
            Err(Error::invalid("a sparse dimension without its indices"))
        }
    };
}
