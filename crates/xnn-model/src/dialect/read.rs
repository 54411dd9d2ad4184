//! The reader of both schemas: from a verified flatbuffer to the representation.

/// Defines `read` for the module's `schema`.
///
/// The module defines `check_version`, `own_code`, `unusable`, `check_layout` and
/// `detailed_quantization`, in which the schemas differ.
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

        /// The shared parts of the file, which subgraphs refer to.
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
                        self.file.report_axis(read.as_ref(), q.quantized_dimension(), place);
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
                    shape: shape.or_else(|| {
                        let is_scalar =
                            shape_signature.is_none() && is_scalar(dtype, data.as_ref());
                        is_scalar.then(Vec::new)
                    }),
                    shape_signature: shape_signature.or(open_rank),
                    quantization,
                    data,
                    is_variable: tensor.is_variable(),
                    sparsity: sparsity.map(Arc::new),
                    unusable: unusable(&tensor),
                })
            }

            /// The data of a buffer; `None` if it is empty.
            fn buffer(&self, index: u32) -> Result<Option<Bytes>> {
                let Some(buffer) = item(self.buffers, index) else {
                    // Buffer 0 is empty by convention, even if the file does not have it.
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
                    Error::invalid(format!("operator code {index} does not exist"))
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
                    i => usize::try_from(i).map(Some).map_err(|_| {
                        Error::invalid(format!("the input tensor {i} does not exist"))
                    }),
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

/// Reads the indices of a sparse dimension of any width.
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
            Err(Error::invalid("a sparse dimension has no indices"))
        }
    };
}
