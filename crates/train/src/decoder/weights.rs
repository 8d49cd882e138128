use crate::error::TrainError;
use burn::{
    module::Param,
    tensor::{DType, Device, Tensor, TensorData},
};

/// Where a decoder's parameters come from: a checkpoint, or a seed.
pub(crate) trait WeightSource {
    /// The values of one parameter, asked for once under its Hugging Face name, in its shape.
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<TensorData, TrainError>;
}

/// Turns values into parameters of one dtype on one device.
pub(crate) struct Builder<'a> {
    source: &'a mut dyn WeightSource,
    dtype: DType,
    device: &'a Device,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(source: &'a mut dyn WeightSource, dtype: DType, device: &'a Device) -> Self {
        Self { source, dtype, device }
    }

    pub(crate) fn parameter<const D: usize>(
        &mut self,
        name: &str,
        shape: [usize; D],
    ) -> Result<Param<Tensor<D>>, TrainError> {
        let data = self.source.take(name, &shape)?;
        let options = (self.device, self.dtype);
        Ok(Param::from_tensor(Tensor::from_data(data, options)))
    }
}
