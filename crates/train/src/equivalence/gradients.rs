use crate::error::TrainError;
use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Gradients, Tensor},
};
use safetensors::{Dtype, tensor::View};
use std::{borrow::Cow, collections::BTreeMap, path::Path};

/// The gradient of one parameter, in float64 on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Shape of the parameter.
    pub shape: Vec<usize>,
    /// Values, row by row.
    pub values: Vec<f64>,
}

/// Gradients by the name of the parameter: its path in the module, which for a
/// [`Decoder`](crate::decoder::Decoder) is its name in the checkpoint.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GradientMap {
    /// The gradients.
    pub gradients: BTreeMap<String, Gradient>,
}

impl GradientMap {
    /// Adds the gradients of another part of the same batch.
    pub fn accumulate(&mut self, other: GradientMap) {
        for (name, gradient) in other.gradients {
            match self.gradients.get_mut(&name) {
                Some(sum) => {
                    for (sum, value) in sum.values.iter_mut().zip(gradient.values) {
                        *sum += value;
                    }
                }
                None => {
                    self.gradients.insert(name, gradient);
                }
            }
        }
    }

    /// Writes the gradients as safetensors, in float32 or float64, into what lies at the path, as
    /// through a link.
    ///
    /// # Errors
    /// A file that cannot be written, and another dtype.
    pub fn save(&self, path: &Path, dtype: DType) -> Result<(), TrainError> {
        let single = match dtype {
            DType::F32 => true,
            DType::F64 => false,
            dtype => return Err(TrainError::Dtype { what: "gradients in a file", dtype }),
        };
        let failed = |message: String| TrainError::File { path: path.to_owned(), message };
        let views =
            self.gradients.iter().map(|(name, gradient)| (name, Encoded { gradient, single }));
        let bytes =
            safetensors::serialize(views, None).map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, bytes)
            .map_err(|error| failed(format!("{error}: choose a path that can be written")))
    }
}

/// A gradient as a tensor whose bytes are made when they are written, one tensor at a time.
struct Encoded<'a> {
    gradient: &'a Gradient,
    single: bool,
}

impl View for Encoded<'_> {
    fn dtype(&self) -> Dtype {
        if self.single { Dtype::F32 } else { Dtype::F64 }
    }

    fn shape(&self) -> &[usize] {
        &self.gradient.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let values = self.gradient.values.iter();
        match self.single {
            true => values.flat_map(|value| (*value as f32).to_le_bytes()).collect(),
            false => values.flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    fn data_len(&self) -> usize {
        self.gradient.values.len() * self.dtype().bitsize() / 8
    }
}

/// The gradients of a module's parameters after a backward pass; a parameter that took no part has
/// zeros.
///
/// # Errors
/// A device that cannot be read.
pub fn collect_gradients<M: Module>(
    module: &M,
    gradients: Gradients,
) -> Result<GradientMap, TrainError> {
    collect(module, Some(gradients))
}

/// The gradients of a module that took no part in anything: zeros for every parameter.
pub(crate) fn zero_gradients<M: Module>(module: &M) -> Result<GradientMap, TrainError> {
    collect(module, None)
}

fn collect<M: Module>(module: &M, gradients: Option<Gradients>) -> Result<GradientMap, TrainError> {
    let mut collect = Collect { gradients, path: Vec::new(), result: Ok(GradientMap::default()) };
    module.visit(&mut collect);
    collect.result
}

struct Collect {
    gradients: Option<Gradients>,
    path: Vec<String>,
    result: Result<GradientMap, TrainError>,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let Ok(map) = &mut self.result else { return };
        let shape = parameter.shape().to_vec();
        let values = match self
            .gradients
            .as_mut()
            .and_then(|gradients| parameter.base().grad_remove(gradients))
        {
            None => Ok(vec![0.0; shape.iter().product()]),
            Some(gradient) => gradient.try_into_vec_as::<f64>(),
        };
        match values {
            Ok(values) => {
                map.gradients.insert(self.path.join("."), Gradient { shape, values });
            }
            Err(error) => {
                self.result = Err(TrainError::Unsupported {
                    what: format!(
                        "gradient of `{}` cannot be read back: {error:?}",
                        self.path.join(".")
                    ),
                });
            }
        }
    }
}

/// The relative gradient error of `found` against `expected`.
///
/// Over tensors, the largest of max |difference| over max |g| of the tensor in `expected`, the
/// denominator at least 1e-6 of the largest |g| of all tensors. A tensor that one side lacks counts
/// as zeros there.
pub fn relative_gradient_error(expected: &GradientMap, found: &GradientMap) -> f64 {
    let largest = |values: &[f64]| values.iter().fold(0.0, |max, value| larger(max, value.abs()));
    let floor =
        1e-6 * expected.gradients.values().fold(0.0, |max, g| larger(max, largest(&g.values)));
    let names = expected.gradients.keys().chain(found.gradients.keys());
    names.fold(0.0, |worst, name| {
        let sides = [expected.gradients.get(name), found.gradients.get(name)];
        let [expected, found] = sides.map(|side| side.map_or(&[][..], |g| g.values.as_slice()));
        let count = expected.len().max(found.len());
        let value = |side: &[f64], index: usize| side.get(index).copied().unwrap_or_default();
        let difference = (0..count).fold(0.0, |max, index| {
            larger(max, (value(expected, index) - value(found, index)).abs())
        });
        match difference == 0.0 {
            true => worst,
            false => larger(worst, difference / larger(floor, largest(expected))),
        }
    })
}

/// The larger of two numbers, or NaN if one of them is, so that a comparison with NaN never passes.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
