use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{DType, Tensor},
};

/// A model with its float parameters cast, for checks in float64 or training in less.
///
/// What of it is computed in a dtype of its own stays so: see [`CausalModel`](crate::CausalModel).
pub fn to_dtype<M: Module>(model: M, dtype: DType) -> M {
    model.map(&mut Cast(dtype))
}

struct Cast(DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = self.0;
        parameter.map(|value| {
            let trained = value.is_require_grad();
            value.detach().cast(dtype).set_require_grad(trained)
        })
    }
}
