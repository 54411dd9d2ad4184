//! The writer of both schemas: from the representation to a flatbuffer.

/// Defines `write` for the module's `schema`.
///
/// The module defines `own_code` and `write_details`.
macro_rules! writer {
    ($dialect:expr, $version:expr) => {
        /// Serializes a model in this dialect.
        pub(crate) fn write(model: &Model) -> Result<Vec<u8>> {
            let mut writer = Writer::default();
            let subgraphs = model
                .subgraphs
                .iter()
                .enumerate()
                .map(|(i, s)| writer.subgraph(s).map_err(|e| e.in_subgraph(i)))
                .collect::<Result<Vec<_>>>()?;
            let metadata =
                model.metadata.iter().map(|m| writer.metadata(m)).collect::<Result<Vec<_>>>()?;
            let signatures =
                model.signatures.iter().map(|s| writer.signature(s)).collect::<Result<Vec<_>>>()?;
            let codes = writer.operator_codes();
            let buffers = writer.buffers();

            let b = &mut writer.builder;
            let description = b.create_string(&model.description);
            let args = schema::ModelArgs {
                version: $version,
                operator_codes: Some(b.create_vector(&codes)),
                subgraphs: Some(b.create_vector(&subgraphs)),
                description: Some(description),
                buffers: Some(b.create_vector(&buffers)),
                metadata: (!metadata.is_empty()).then(|| b.create_vector(&metadata)),
                signature_defs: (!signatures.is_empty()).then(|| b.create_vector(&signatures)),
                ..Default::default()
            };
            let root = schema::Model::create(b, &args);
            schema::finish_model_buffer(b, root);
            Ok(b.finished_data().to_vec())
        }

        /// A file that is being written.
        #[derive(Default)]
        struct Writer<'a> {
            builder: FlatBufferBuilder<'a>,
            blobs: Blobs<'a>,
            codes: OpCodes<'a>,
        }

        impl<'a> Writer<'a> {
            fn subgraph(&mut self, graph: &'a Subgraph) -> Result<WIPOffset<schema::SubGraph<'a>>> {
                let tensors = graph
                    .tensors
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.tensor(t).map_err(|e| e.in_tensor(i, &t.name)))
                    .collect::<Result<Vec<_>>>()?;
                let operators = graph
                    .operators
                    .iter()
                    .enumerate()
                    .map(|(i, op)| self.operator(op).map_err(|e| e.in_operator(i, op.op.name())))
                    .collect::<Result<Vec<_>>>()?;
                let inputs = self.ints(&graph.inputs)?;
                let outputs = self.ints(&graph.outputs)?;
                let b = &mut self.builder;
                let args = schema::SubGraphArgs {
                    tensors: Some(b.create_vector(&tensors)),
                    inputs: Some(inputs),
                    outputs: Some(outputs),
                    operators: Some(b.create_vector(&operators)),
                    name: Some(b.create_string(&graph.name)),
                    ..Default::default()
                };
                Ok(schema::SubGraph::create(b, &args))
            }

            fn tensor(&mut self, tensor: &'a Tensor) -> Result<WIPOffset<schema::Tensor<'a>>> {
                if let Some(reason) = &tensor.unusable {
                    return Err(Error::invalid(format!(
                        "cannot be written to a new file: {reason}"
                    )));
                }
                let quantization =
                    tensor.quantization.as_ref().map(|q| self.quantization(q)).transpose()?;
                let sparsity = tensor.sparsity.as_deref().map(|s| self.sparsity(s)).transpose()?;
                let signature = tensor.shape_signature.as_deref();
                // A tensor of unknown rank is written without a shape, even if one was inferred.
                let has_rank = tensor.shape.is_some() && signature != Some(&[]);
                let shape = tensor.shape.as_deref().filter(|dims| has_rank || dims.is_empty());
                let shape = shape.map(|dims| self.ints(dims)).transpose()?;
                let b = &mut self.builder;
                let args = schema::TensorArgs {
                    shape,
                    type_: tensor.dtype.to_wire(b)?,
                    buffer: self.blobs.add(tensor.data.as_ref())?,
                    name: Some(b.create_string(&tensor.name)),
                    quantization,
                    is_variable: tensor.is_variable,
                    sparsity,
                    shape_signature: signature
                        .filter(|dims| !dims.is_empty())
                        .map(|dims| b.create_vector(dims)),
                    has_rank,
                    ..Default::default()
                };
                Ok(schema::Tensor::create(b, &args))
            }

            fn quantization(
                &mut self,
                quantization: &Quantization,
            ) -> Result<WIPOffset<schema::QuantizationParameters<'a>>> {
                let b = &mut self.builder;
                let mut args = schema::QuantizationParametersArgs::default();
                match quantization {
                    Quantization::PerTensor { scale, zero_point } => {
                        args.scale = Some(b.create_vector(&[*scale]));
                        args.zero_point = Some(b.create_vector(&[*zero_point]));
                    }
                    Quantization::PerAxis { scales, zero_points, axis } => {
                        args.scale = Some(b.create_vector(scales));
                        let each = (0..scales.len()).map(|slice| zero_points.at(slice));
                        args.zero_point = Some(b.create_vector_from_iter(each));
                        args.quantized_dimension = axis.to_wire(b)?;
                    }
                    details => write_details(details, b, &mut args)?,
                }
                Ok(schema::QuantizationParameters::create(b, &args))
            }

            fn sparsity(
                &mut self,
                sparsity: &Sparsity,
            ) -> Result<WIPOffset<schema::SparsityParameters<'a>>> {
                let dimensions = sparsity
                    .dimensions
                    .iter()
                    .map(|d| self.sparse_dimension(d))
                    .collect::<Result<Vec<_>>>()?;
                let args = schema::SparsityParametersArgs {
                    traversal_order: Some(self.ints(&sparsity.traversal_order)?),
                    block_map: Some(self.ints(&sparsity.block_map)?),
                    dim_metadata: Some(self.builder.create_vector(&dimensions)),
                };
                Ok(schema::SparsityParameters::create(&mut self.builder, &args))
            }

            fn sparse_dimension(
                &mut self,
                dimension: &SparseDimension,
            ) -> Result<WIPOffset<schema::DimensionMetadata<'a>>> {
                let mut args = schema::DimensionMetadataArgs::default();
                match dimension {
                    SparseDimension::Dense { size } => {
                        args.dense_size = size.to_wire(&mut self.builder)?;
                    }
                    SparseDimension::Csr { segments, indices } => {
                        args.format = schema::DimensionType::SPARSE_CSR;
                        args.array_segments_type = schema::SparseIndexVector::Int32Vector;
                        args.array_segments = Some(self.int_vector(segments)?.as_union_value());
                        args.array_indices_type = schema::SparseIndexVector::Int32Vector;
                        args.array_indices = Some(self.int_vector(indices)?.as_union_value());
                    }
                }
                Ok(schema::DimensionMetadata::create(&mut self.builder, &args))
            }

            fn int_vector(
                &mut self,
                values: &[usize],
            ) -> Result<WIPOffset<schema::Int32Vector<'a>>> {
                let values = Some(self.ints(values)?);
                Ok(schema::Int32Vector::create(
                    &mut self.builder,
                    &schema::Int32VectorArgs { values },
                ))
            }

            fn operator(
                &mut self,
                operator: &'a Operator,
            ) -> Result<WIPOffset<schema::Operator<'a>>> {
                let op = &operator.op;
                if !own_code(op.code()) {
                    return Err(Error::invalid(format!(
                        "{} does not have this operator",
                        $dialect
                    )));
                }
                let mut args = schema::OperatorArgs {
                    opcode_index: self.codes.add(op, operator.version)?,
                    outputs: Some(self.ints(&operator.outputs)?),
                    ..Default::default()
                };
                let b = &mut self.builder;
                let inputs = operator
                    .inputs
                    .iter()
                    .map(|input| input.map_or(Ok(-1), |i| i.to_wire(b)))
                    .collect::<Result<Vec<i32>>>()?;
                args.inputs = Some(b.create_vector(&inputs));
                if let Op::Custom(custom) = op {
                    self.blobs.count(&custom.options)?;
                    args.custom_options = Some(push_custom_options(b, &custom.options));
                }
                write_options(op, b, &mut args)?;
                if !operator.intermediates.is_empty() {
                    args.intermediates = Some(self.ints(&operator.intermediates)?);
                }
                Ok(schema::Operator::create(&mut self.builder, &args))
            }

            fn metadata(
                &mut self,
                metadata: &'a Metadata,
            ) -> Result<WIPOffset<schema::Metadata<'a>>> {
                let args = schema::MetadataArgs {
                    name: Some(self.builder.create_string(&metadata.name)),
                    buffer: self.blobs.add(Some(&metadata.data))?,
                };
                Ok(schema::Metadata::create(&mut self.builder, &args))
            }

            fn signature(
                &mut self,
                signature: &Signature,
            ) -> Result<WIPOffset<schema::SignatureDef<'a>>> {
                let b = &mut self.builder;
                let args = schema::SignatureDefArgs {
                    inputs: Some(tensor_maps(b, &signature.inputs)?),
                    outputs: Some(tensor_maps(b, &signature.outputs)?),
                    signature_key: Some(b.create_string(&signature.key)),
                    subgraph_index: signature.subgraph.to_wire(b)?,
                };
                Ok(schema::SignatureDef::create(b, &args))
            }

            fn operator_codes(&mut self) -> Vec<WIPOffset<schema::OperatorCode<'a>>> {
                let b = &mut self.builder;
                self.codes
                    .entries()
                    .iter()
                    .map(|&(code, custom, version)| {
                        let args = schema::OperatorCodeArgs {
                            deprecated_builtin_code: super::buffers::narrow_code(code),
                            custom_code: custom.map(|c| b.create_string(c)),
                            version,
                            builtin_code: schema::BuiltinOperator(code),
                        };
                        schema::OperatorCode::create(b, &args)
                    })
                    .collect()
            }

            /// Writes the empty buffer and the contents.
            fn buffers(&mut self) -> Vec<WIPOffset<schema::Buffer<'a>>> {
                let b = &mut self.builder;
                let mut buffers = vec![schema::Buffer::create(b, &Default::default())];
                for content in self.blobs.contents() {
                    let data = Some(push_aligned::<DATA_ALIGNMENT>(b, content));
                    let args = schema::BufferArgs { data, ..Default::default() };
                    buffers.push(schema::Buffer::create(b, &args));
                }
                buffers
            }

            fn ints(&mut self, values: &[usize]) -> Result<WIPOffset<Vector<'a, i32>>> {
                let b = &mut self.builder;
                let values = values.iter().map(|v| v.to_wire(b)).collect::<Result<Vec<i32>>>()?;
                Ok(b.create_vector(&values))
            }
        }

        #[allow(clippy::type_complexity, reason = "a generated type, named once")]
        fn tensor_maps<'b>(
            builder: &mut FlatBufferBuilder<'b>,
            map: &[(String, usize)],
        ) -> Result<WIPOffset<Vector<'b, ForwardsUOffset<schema::TensorMap<'b>>>>> {
            let entries = map
                .iter()
                .map(|(name, tensor)| {
                    let args = schema::TensorMapArgs {
                        name: Some(builder.create_string(name)),
                        tensor_index: tensor.to_wire(builder)?,
                    };
                    Ok(schema::TensorMap::create(builder, &args))
                })
                .collect::<Result<Vec<_>>>()?;
            Ok(builder.create_vector(&entries))
        }
    };
}
