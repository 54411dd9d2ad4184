//! Views of inputs and outputs as arrays of the `ndarray` crate.

use ndarray::{ArrayBase, ArrayViewD, ArrayViewMutD, Data, Dimension};

use super::Runner;
use super::tensors::{inputs, outputs};
use crate::error::Error;
use crate::tensor::{Element, TensorKey, View};

impl Runner {
    /// An input as an array, to be filled.
    ///
    /// # Errors
    ///
    /// See [`Runner::input_as_mut`].
    pub fn input_array_mut<'k, T: Element>(
        &mut self,
        key: impl Into<TensorKey<'k>>,
    ) -> Result<ArrayViewMutD<'_, T>, Error> {
        let (index, spec) = inputs(&self.inputs).find(key.into())?;
        let dims = spec.dims.clone();
        let misfit = inputs(&self.inputs).elements_error(index, "its shape does not fit an array");
        let elements = self.input_as_mut::<T>(index)?;
        ArrayViewMutD::from_shape(dims, elements).map_err(|_| misfit.into())
    }

    /// An output as an array, as the last run computed it.
    ///
    /// # Errors
    ///
    /// See [`Runner::output_as`].
    pub fn output_array<'k, T: Element>(
        &self,
        key: impl Into<TensorKey<'k>>,
    ) -> Result<ArrayViewD<'_, T>, Error> {
        let tensors = outputs(&self.outputs);
        let (index, spec) = tensors.find(key.into())?;
        let elements = self.output_as::<T>(index)?;
        let misfit = |_| tensors.elements_error(index, "its shape does not fit an array").into();
        ArrayViewD::from_shape(spec.dims.as_slice(), elements).map_err(misfit)
    }
}

impl<'a> View<'a> {
    /// Elements and shape of an array; `None` unless it is dense and row-major (`as_standard_layout` makes it so).
    #[must_use]
    pub fn from_array<T, S, D>(array: &'a ArrayBase<S, D>) -> Option<Self>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        Some(Self::from(array.as_slice()?).with_dims(array.shape()))
    }
}
