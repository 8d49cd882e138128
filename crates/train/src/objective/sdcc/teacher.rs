use crate::{
    error::{ObjectiveError, TrainError},
    model::CausalModel,
};
use burn::{
    module::{ModuleMapper, ModuleVisitor, Param, ParamId},
    tensor::Tensor,
};
use std::collections::HashMap;

/// Whose predictions under the live views the student is pulled to. None of them gets a gradient.
#[derive(Debug, Clone)]
pub enum Teacher<M> {
    /// The student's own weights of this step.
    Live,
    /// Weights that stay as they are: those of a base model, say.
    Frozen(M),
    /// A slow average of the student's weights.
    MovingAverage(MovingAverage<M>),
}

impl<M: CausalModel> Teacher<M> {
    /// The teacher's model.
    pub fn model<'a>(&'a self, student: &'a M) -> &'a M {
        match self {
            Self::Live => student,
            Self::Frozen(model) => model,
            Self::MovingAverage(average) => average.model(),
        }
    }

    /// Takes in the student's weights after a step of the optimiser; only a moving average changes.
    ///
    /// # Errors
    /// As [`MovingAverage::update`].
    pub fn update(&mut self, student: &M) -> Result<(), TrainError> {
        match self {
            Self::Live | Self::Frozen(_) => Ok(()),
            Self::MovingAverage(average) => average.update(student),
        }
    }
}

/// An exponential moving average of a model's float parameters:
/// `average = decay average + (1 - decay) student`.
#[derive(Debug, Clone)]
pub struct MovingAverage<M> {
    model: M,
    decay: f64,
}

impl<M: CausalModel> MovingAverage<M> {
    /// The average that starts at a student's weights.
    ///
    /// # Errors
    /// A decay outside 0 to 1.
    pub fn new(student: &M, decay: f64) -> Result<Self, TrainError> {
        match (0.0..=1.0).contains(&decay) {
            true => Ok(Self { model: student.valid(), decay }),
            false => {
                let expected =
                    "a number from 0, which is the student itself, to 1, which never moves";
                Err(ObjectiveError::Setting {
                    setting: "the decay of the moving average",
                    value: decay,
                    expected,
                }
                .into())
            }
        }
    }

    /// The averaged model, on a device without autodiff.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Takes in a student's weights.
    ///
    /// # Errors
    /// A student that lacks a parameter or has more: it must descend from the one that the average
    /// started at.
    pub fn update(&mut self, student: &M) -> Result<(), TrainError> {
        let mut latest = Latest::default();
        student.valid().visit(&mut latest);
        let mut mix = Mix { latest, decay: self.decay, missing: 0 };
        let model = self.model.clone().map(&mut mix);
        let (missing, more) = (mix.missing, mix.latest.of_parameter.len());
        if missing + more > 0 {
            let what = format!(
                "the student lacks {missing} parameters of its moving average and has {more} more: start the average at the model that is trained"
            );
            return Err(TrainError::Unsupported { what });
        }
        self.model = model;
        Ok(())
    }
}

/// Flat parameters of the student.
#[derive(Default)]
struct Latest {
    of_parameter: HashMap<ParamId, Tensor<1>>,
}

impl ModuleVisitor for Latest {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        self.of_parameter.insert(parameter.id, parameter.base().flatten::<1>(0, D - 1));
    }
}

/// Moves each parameter of the average.
struct Mix {
    latest: Latest,
    decay: f64,
    missing: usize,
}

impl ModuleMapper for Mix {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(latest) = self.latest.of_parameter.remove(&parameter.id) else {
            self.missing += 1;
            return parameter;
        };
        let decay = self.decay;
        parameter.map(|average| {
            let latest = latest.reshape(average.dims()).mul_scalar(1.0 - decay);
            average.mul_scalar(decay).add(latest)
        })
    }
}
