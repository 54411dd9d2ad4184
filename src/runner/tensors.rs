//! Access to the inputs and outputs of a runner.

use xnn_interp::TensorBuf;
use xnn_model::DType;

use super::{Engine, Runner};
use crate::error::Error;
use crate::tensor::{Element, Side, TensorError, TensorKey, Tensors, View};
use crate::tensor_spec::TensorSpec;

impl Runner {
    /// Inputs, in the model's order.
    #[must_use]
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// Outputs, in the model's order.
    #[must_use]
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// Position of the input with this name.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        inputs(&self.inputs).position(name)
    }

    /// Position of the output with this name.
    #[must_use]
    pub fn output_index(&self, name: &str) -> Option<usize> {
        outputs(&self.outputs).position(name)
    }

    /// Elements of an input, row-major. They keep their values from run to run.
    ///
    /// ```
    /// # use xnn_delegate::Runner;
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// # let mut runner = Runner::open(path)?;
    /// let name = runner.inputs()[0].name.clone();
    /// runner.input_as_mut::<f32>(&name)?.fill(0.5);
    /// // Errors list the names that the model has.
    /// let error = runner.input_as_mut::<f32>("x").unwrap_err();
    /// assert!(error.to_string().contains(&name));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such input, or its elements are of another type.
    pub fn input_as_mut<'k, T: Element>(
        &mut self,
        key: impl Into<TensorKey<'k>>,
    ) -> Result<&mut [T], Error> {
        let tensors = inputs(&self.inputs);
        let index = tensors.find_typed(key.into(), T::DTYPE)?;
        let bytes = input_memory(&mut self.engine, index)?;
        // An empty slice has no alignment.
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        bytemuck::checked::try_cast_slice_mut(bytes)
            .map_err(|error| tensors.elements_error(index, error.to_string()).into())
    }

    /// Elements of an output as the last run computed them, row-major.
    ///
    /// # Errors
    ///
    /// There is no such output, its elements are of another type, or a model with reference kernels has not run yet.
    pub fn output_as<'k, T: Element>(&self, key: impl Into<TensorKey<'k>>) -> Result<&[T], Error> {
        let tensors = outputs(&self.outputs);
        let index = tensors.find_typed(key.into(), T::DTYPE)?;
        let bytes = self.output_memory(index)?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        bytemuck::checked::try_cast_slice(bytes)
            .map_err(|error| tensors.elements_error(index, error.to_string()).into())
    }

    /// Bytes of an input: dense, row-major, in native byte order.
    ///
    /// # Errors
    ///
    /// There is no such input, or its elements have no fixed size.
    pub fn input_bytes_mut<'k>(
        &mut self,
        key: impl Into<TensorKey<'k>>,
    ) -> Result<&mut [u8], Error> {
        let (index, _) = inputs(&self.inputs).find(key.into())?;
        input_memory(&mut self.engine, index)
    }

    /// Bytes of an output as the last run computed them: dense, row-major, in native byte order.
    ///
    /// # Errors
    ///
    /// There is no such output, or a model with reference kernels has not run yet.
    pub fn output_bytes<'k>(&self, key: impl Into<TensorKey<'k>>) -> Result<&[u8], Error> {
        let (index, _) = outputs(&self.outputs).find(key.into())?;
        self.output_memory(index)
    }

    /// Real numbers that an output stands for: its elements, dequantized if they are quantized.
    ///
    /// # Errors
    ///
    /// The errors of [`Runner::output_bytes`], or the elements are not numbers.
    pub fn output_reals<'k>(&self, key: impl Into<TensorKey<'k>>) -> Result<Vec<f32>, Error> {
        let tensors = outputs(&self.outputs);
        let (index, spec) = tensors.find(key.into())?;
        let reals = spec.reals(self.output_memory(index)?);
        let why = || format!("elements of type {} are not numbers", spec.dtype);
        reals.ok_or_else(|| tensors.elements_error(index, why()).into())
    }

    /// Gives an input of strings its elements, in row-major order.
    ///
    /// # Errors
    ///
    /// There is no such input, its elements are of another type, or it has another number of elements.
    pub fn set_strings<'k, S: AsRef<[u8]>>(
        &mut self,
        key: impl Into<TensorKey<'k>>,
        strings: &[S],
    ) -> Result<(), Error> {
        let tensors = inputs(&self.inputs);
        let index = tensors.find_typed(key.into(), DType::String)?;
        let dims = self.inputs.get(index).map_or(&[][..], |spec| &spec.dims);
        match (&mut self.engine, TensorBuf::from_strings(dims, strings)) {
            (Engine::Partial(interpreter), Some(value)) => Ok(interpreter.set_input(index, value)?),
            _ => {
                let why = format!("{} strings do not fill the shape {dims:?}", strings.len());
                Err(tensors.elements_error(index, why).into())
            }
        }
    }

    /// Elements of an output of strings.
    ///
    /// # Errors
    ///
    /// There is no such output, its elements are of another type, or the model has not run yet.
    pub fn output_strings<'k>(&self, key: impl Into<TensorKey<'k>>) -> Result<Vec<&[u8]>, Error> {
        let tensors = outputs(&self.outputs);
        let index = tensors.find_typed(key.into(), DType::String)?;
        let strings = match &self.engine {
            Engine::Whole(_) => None,
            Engine::Partial(interpreter) => interpreter.output(index)?.strings(),
        };
        strings.ok_or_else(|| tensors.elements_error(index, "the strings are damaged").into())
    }

    /// Fills these inputs, runs, and returns the runner to read the outputs. Other inputs keep their values.
    ///
    /// An input is resized if its view has another shape ([`View::with_dims`]). The elements are copied;
    /// [`Runner::input_as_mut`] avoids that.
    ///
    /// ```
    /// # use xnn_delegate::Runner;
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// # let mut runner = Runner::open(path)?;
    /// # let name = runner.inputs()[0].name.clone();
    /// # let pixels = vec![0.5f32; runner.input_as_mut::<f32>(0)?.len()];
    /// let probabilities = runner.run_with([(name.as_str(), &pixels)])?.output_as::<f32>(0)?;
    /// # assert_eq!(probabilities.len(), 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such input, its elements are of another type or number, or an error of [`Runner::resize_inputs`] or
    /// [`Runner::run`].
    pub fn run_with<'k, 'v>(
        &mut self,
        inputs: impl IntoIterator<Item = (impl Into<TensorKey<'k>>, impl Into<View<'v>>)>,
    ) -> Result<&Self, Error> {
        let mut views: Vec<(usize, View<'v>)> = Vec::with_capacity(self.inputs.len());
        for (key, view) in inputs {
            let view = view.into();
            let index = self::inputs(&self.inputs).find_typed(key.into(), view.dtype)?;
            views.push((index, view));
        }
        let shapes = views.iter().filter_map(|(index, view)| Some((*index, view.dims?)));
        let shapes: Vec<(usize, &[usize])> = shapes.collect();
        self.resize_inputs(&shapes)?;
        for (index, View { bytes, .. }) in views {
            let memory = input_memory(&mut self.engine, index)?;
            if memory.len() != bytes.len() {
                let (expected, found) = (memory.len(), bytes.len());
                let (side, tensor) = (Side::Input, self::inputs(&self.inputs).label(index));
                return Err(TensorError::Size { side, tensor, expected, found }.into());
            }
            memory.copy_from_slice(bytes);
        }
        self.run()?;
        Ok(self)
    }

    fn output_memory(&self, index: usize) -> Result<&[u8], Error> {
        match &self.engine {
            Engine::Whole(session) => Ok(session.output(index)),
            Engine::Partial(interpreter) => Ok(interpreter.output(index)?.bytes),
        }
    }
}

fn input_memory(engine: &mut Engine, index: usize) -> Result<&mut [u8], Error> {
    match engine {
        Engine::Whole(session) => Ok(session.input_mut(index)),
        Engine::Partial(interpreter) => Ok(interpreter.input_mut(index)?.bytes),
    }
}

pub(super) fn inputs(specs: &[TensorSpec]) -> Tensors<'_> {
    Tensors { side: Side::Input, specs }
}

pub(super) fn outputs(specs: &[TensorSpec]) -> Tensors<'_> {
    Tensors { side: Side::Output, specs }
}
