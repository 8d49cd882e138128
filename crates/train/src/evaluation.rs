//! Log-probabilities and gradients of whole layouts, a few sequences at a time.
use crate::{
    backward::backward,
    batch::{Batch, BatchTerms},
    decoder::Decoder,
    equivalence::{GradientMap, collect_gradients, zero_gradients},
    error::TrainError,
    memory::micro_batches,
    model::CausalModel,
    objective::{NllConfig, NllOutput, hidden_states},
};
use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Device, Tensor},
};
use pleach_layout::{Sequence, TermId};

/// The log-probability of one loss term under a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TermLogp {
    /// Generation that sampled the target.
    pub generation: u32,
    /// Index of the target in the generation's output.
    pub offset: u32,
    /// log p, in nats.
    pub logp: f64,
}

impl TermLogp {
    /// The term's name.
    pub fn id(&self) -> TermId {
        TermId::new(self.generation, self.offset)
    }
}

/// What a model says about a layout.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evaluation {
    /// Log-probability of every loss term, sequence by sequence.
    pub logp: Vec<TermLogp>,
    /// Weighted sum of the negative log-likelihoods, in nats; infinite or NaN where a target is
    /// impossible to the model.
    pub nll: f64,
    /// Gradients of `nll`.
    pub gradients: GradientMap,
}

/// Log-probabilities of a layout's loss terms, without gradients.
///
/// Sequences run a few at a time, so that memory stays bounded however many there are; one without
/// tokens has nothing to run. `progress` is called with the sequences done.
///
/// # Errors
/// Sequences or tokens that the model cannot take.
pub fn log_probabilities<M: CausalModel>(
    model: &M,
    sequences: &[Sequence],
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<TermLogp>, TrainError> {
    let model = model.valid();
    let mut logp = Vec::new();
    run(&model, sequences, progress, |batch, output| {
        logp.extend(label(batch.terms(), &output)?);
        Ok(())
    })?;
    Ok(logp)
}

/// Log-probabilities, summed negative log-likelihood and its gradients over a layout.
///
/// Sequences run a few at a time and gradients are added up in float64 on the host. One without
/// tokens has nothing to run; where none has any, the gradients are zeros for every parameter.
///
/// # Errors
/// Sequences or tokens that the model cannot take, and a model whose parameters are all frozen.
pub fn evaluate<M: CausalModel>(
    model: &M,
    sequences: &[Sequence],
    progress: &mut dyn FnMut(usize),
) -> Result<Evaluation, TrainError> {
    let model = model.clone().train();
    let mut evaluation = Evaluation::default();
    run(&model, sequences, progress, |batch, output| evaluation.take(&model, batch, output))?;
    evaluation.complete(&model)
}

/// Log-probabilities, summed negative log-likelihood and its gradients by a replay through a
/// key/value cache.
///
/// What a packed layout under `kv_evict` is checked against: see [`Decoder::hidden_replay`].
///
/// # Errors
/// Sequences or tokens that the decoder cannot take, and a decoder whose parameters are all frozen.
pub fn replay(model: &Decoder, sequences: &[Sequence]) -> Result<Evaluation, TrainError> {
    let model = model.clone().train();
    let device = Placement::of(&model)?.device;
    let nll = NllConfig::new().init();
    let mut evaluation = Evaluation::default();
    for sequence in sequences.iter().filter(|sequence| !sequence.is_empty()) {
        let batch = Batch::new([sequence], &device)?;
        let output = nll.measure(&model, model.hidden_replay(sequence)?, batch.terms())?;
        evaluation.take(&model, &batch, output)?;
    }
    evaluation.complete(&model)
}

impl Evaluation {
    fn take<M: CausalModel>(
        &mut self,
        model: &M,
        batch: &Batch,
        output: NllOutput,
    ) -> Result<(), TrainError> {
        self.logp.extend(label(batch.terms(), &output)?);
        self.nll += read(&output.loss)?.into_iter().sum::<f64>();
        if output.loss.is_tracked() || !batch.terms().is_empty() {
            self.gradients.accumulate(collect_gradients(model, backward(&output.loss)?)?);
        }
        Ok(())
    }

    /// Names every parameter also where nothing ran, so that gradients are complete whatever the
    /// layout.
    fn complete<M: CausalModel>(mut self, model: &M) -> Result<Self, TrainError> {
        if self.gradients.gradients.is_empty() {
            self.gradients = zero_gradients(model)?;
        }
        Ok(self)
    }
}

fn run<M: CausalModel>(
    model: &M,
    sequences: &[Sequence],
    progress: &mut dyn FnMut(usize),
    mut each: impl FnMut(&Batch, NllOutput) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    let device = Placement::of(model)?.device;
    let nll = NllConfig::new().init();
    let tokens: Vec<usize> = sequences.iter().map(Sequence::len).collect();
    let mut done = 0;
    for part in micro_batches(&tokens) {
        let rows: Vec<&Sequence> = part.iter().map(|&index| &sequences[index]).collect();
        let batch = Batch::new(&rows, &device)?;
        let output = nll.measure(model, hidden_states(model, &batch)?, batch.terms())?;
        each(&batch, output)?;
        done = part.last().map_or(done, |last| last + 1);
        progress(done);
    }
    if done < sequences.len() {
        progress(sequences.len());
    }
    Ok(())
}

/// The log-probabilities of an output under the names of their terms.
pub(crate) fn label(terms: &BatchTerms, output: &NllOutput) -> Result<Vec<TermLogp>, TrainError> {
    let values = read(&output.logp_n)?;
    let named = terms.ids.iter().zip(values);
    let of = |(&TermId { generation, offset }, logp)| TermLogp { generation, offset, logp };
    Ok(named.map(of).collect())
}

pub(crate) fn read(tensor: &Tensor<1>) -> Result<Vec<f64>, TrainError> {
    tensor.try_to_vec_as::<f64>().map_err(|error| TrainError::Unsupported {
        what: format!("numbers cannot be read back from the device: {error:?}"),
    })
}

/// Where a model lies and what it computes in, by its first float parameter.
pub(crate) struct Placement {
    pub(crate) device: Device,
    pub(crate) dtype: DType,
}

impl Placement {
    pub(crate) fn of<M: Module>(model: &M) -> Result<Self, TrainError> {
        let mut find = Find { found: None };
        model.visit(&mut find);
        find.found.ok_or(TrainError::NoParameters)
    }
}

struct Find {
    found: Option<Placement>,
}

impl ModuleVisitor for Find {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        if self.found.is_none() {
            let tensor = parameter.base();
            self.found = Some(Placement { device: tensor.device(), dtype: tensor.dtype() });
        }
    }
}
