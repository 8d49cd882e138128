use pleach_kernels::KernelError;
use pleach_layout::LayoutError;
use std::path::PathBuf;

/// What is wrong with a device, a checkpoint, a batch or a comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Attention refused its mask or tensors.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// No device has this name.
    #[error("no device is called `{name}`: use flex, ndarray, wgpu or cuda")]
    UnknownDevice {
        /// The name that was given.
        name: String,
    },
    /// The device's support is not compiled in.
    #[error("device `{name}` is not built in: build with `--features {name}`")]
    DeviceNotBuilt {
        /// Name of the device and of its feature.
        name: &'static str,
    },
    /// The device's support is compiled in but the machine has no such device.
    #[error("device `{name}` is built in but this machine has none: {advice}")]
    DeviceAbsent {
        /// Name of the device.
        name: &'static str,
        /// What may help.
        advice: &'static str,
    },
    /// The dtype cannot be computed in on the device.
    #[error("{precision} is not available on device `{device}`: use {advice}")]
    PrecisionUnavailable {
        /// The dtype that was asked for.
        precision: &'static str,
        /// Name of the device.
        device: String,
        /// What works instead.
        advice: &'static str,
    },
    /// No dtype has this name.
    #[error("no dtype is called `{name}`: use f32 or f64")]
    UnknownPrecision {
        /// The name that was given.
        name: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said, and what to do.
        message: String,
    },
    /// A configuration key has a value that this decoder cannot honour.
    #[error("{}: key `{key}`: {problem}", path.display())]
    ConfigKey {
        /// The configuration file.
        path: PathBuf,
        /// The key, dotted for nested ones.
        key: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A decoder configuration that no model can have.
    #[error("decoder configuration: {problem}")]
    Config {
        /// What is wrong and what to do.
        problem: String,
    },
    /// A checkpoint lacks a tensor that the configuration asks for.
    #[error("{}: tensor `{name}` is missing: the checkpoint does not fit its config.json, or a shard is not there", path.display())]
    MissingTensor {
        /// The file that should hold it.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
    /// A checkpoint has a tensor that the configuration does not ask for.
    #[error("{}: unexpected tensor `{name}`: the configuration has no such parameter, so the model would not be the one that was trained", path.display())]
    UnexpectedTensor {
        /// The file that holds it.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
    /// A tensor of a checkpoint has another shape than the configuration asks for.
    #[error("{}: tensor `{name}` has shape {found:?}, the configuration asks for {expected:?}", path.display())]
    TensorShape {
        /// The file that holds it.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Shape by the configuration.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A batch without sequences or with an empty one.
    #[error("row {row} of the batch is empty: give at least one sequence, each with at least one token")]
    EmptyRow {
        /// Row of the batch.
        row: usize,
    },
    /// The arrays of a sequence have different lengths.
    #[error("row {row}: `{array}` has {found} entries for {tokens} tokens: give one per token")]
    ArrayLength {
        /// Row of the batch.
        row: usize,
        /// The array that disagrees.
        array: &'static str,
        /// Tokens of the row.
        tokens: usize,
        /// Entries that were given.
        found: usize,
    },
    /// A loss term points outside its row.
    #[error(
        "row {row}, generation {generation}, offset {offset}: source {source_index} lies outside the row's {tokens} tokens"
    )]
    TermSource {
        /// Row of the batch.
        row: usize,
        /// Generation of the term.
        generation: u32,
        /// Offset of the term.
        offset: u32,
        /// The index that was given.
        source_index: u32,
        /// Tokens of the row.
        tokens: usize,
    },
    /// A token id that the model has no embedding or logit for.
    #[error(
        "token id {token} is outside the model's vocabulary of {vocabulary}: tokenize with the tokenizer of this checkpoint"
    )]
    Vocabulary {
        /// The largest id that was met.
        token: u32,
        /// Size of the model's vocabulary.
        vocabulary: usize,
    },
    /// Weights that are not all 0 and yet sum to nothing that one can divide by.
    #[error(
        "the weights of {terms} loss terms sum to {sum}: a weighted mean needs a positive finite sum; use `Reduction::Sum`, or give weights"
    )]
    Weights {
        /// Number of terms.
        terms: usize,
        /// Sum of their weights.
        sum: f64,
    },
    /// A loss that no parameter can be trained by.
    #[error(
        "the loss of {terms} terms depends on no trainable parameter: unfreeze parameters, or take `log_probabilities`, which needs no gradients"
    )]
    Untracked {
        /// Number of terms.
        terms: usize,
    },
    /// A chunk size of 0.
    #[error("a chunk of 0 loss terms computes nothing: use at least 1")]
    EmptyChunk,
    /// Two layouts do not have the same loss terms.
    #[error(
        "generation {generation}, offset {offset} is a loss term of one layout only: build both layouts from the same tree"
    )]
    TermsDiffer {
        /// Generation of the term.
        generation: u32,
        /// Offset of the term.
        offset: u32,
    },
    /// A model gave a tensor of another shape than its trait promises.
    #[error("the model's {what} have shape {found:?}, expected {expected:?}")]
    ModelShape {
        /// Which output.
        what: &'static str,
        /// Shape by the trait's contract.
        expected: Vec<usize>,
        /// Shape that was given.
        found: Vec<usize>,
    },
    /// A model without parameters, so without a device or a dtype.
    #[error("the model has no float parameters: there is nothing to run or to differentiate")]
    NoParameters,
    /// A layout refused its tree.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A setting of an objective that means nothing.
    #[error("{setting} is {value}: use {expected}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// The value that was given.
        value: f64,
        /// What it can be.
        expected: &'static str,
    },
    /// A term that only one side of a pair has.
    #[error(
        "generation {generation}, offset {offset} is no loss term of the {side}'s batch: pair terms that both batches have"
    )]
    Unpaired {
        /// Generation of the term.
        generation: u32,
        /// Offset of the term.
        offset: u32,
        /// `student` or `teacher`.
        side: &'static str,
    },
    /// A pair that predicts two different tokens.
    #[error(
        "generation {generation}, offset {offset}: the student predicts token {expected}, its teacher {found}: align equal targets"
    )]
    Misaligned {
        /// Generation of the student's term.
        generation: u32,
        /// Offset of the student's term.
        offset: u32,
        /// The student's target.
        expected: u32,
        /// The teacher's target.
        found: u32,
    },
    /// A loss that would make every parameter NaN.
    #[error(
        "the {what} of {terms} terms is not finite: a model rules out a token that the other side allows, or its logits are not finite; give such terms weight 0 or lower the learning rate"
    )]
    NotFinite {
        /// Which loss.
        what: &'static str,
        /// Number of terms.
        terms: usize,
    },
    /// Numbers that are not one a term.
    #[error("{found} numbers are given as {what}, {terms} are needed: give one each, in the same order")]
    SignalLength {
        /// What they are.
        what: &'static str,
        /// How many are needed.
        terms: usize,
        /// How many were given.
        found: usize,
    },
    /// A number of a term that cannot be computed with.
    #[error("generation {generation}, offset {offset}: {what} {value} is not finite: record it, or give the term weight 0")]
    SignalValue {
        /// What it is.
        what: &'static str,
        /// Generation of the term.
        generation: u32,
        /// Offset of the term.
        offset: u32,
        /// The value that was given.
        value: f64,
    },
    /// Numbers without the setting that uses them, or the other way round.
    #[error("a {what} per term and the setting `{setting}` go together: give both or neither")]
    Signal {
        /// What the numbers are.
        what: &'static str,
        /// The setting that uses them.
        setting: &'static str,
    },
    /// A reward that nothing can be compared with.
    #[error("rollout {rollout} has reward {reward}: give a finite reward, or leave the rollout out of its group")]
    Reward {
        /// Index of the rollout.
        rollout: usize,
        /// Its reward.
        reward: f64,
    },
    /// A rollout without an outcome record.
    #[error("rollout `{rollout}` has no outcome: add an outcome record with its group and reward")]
    NoOutcome {
        /// Name of the rollout.
        rollout: String,
    },
    /// A query outside what its generation sampled.
    #[error("generation {generation}: a query at {start}..{end} lies outside its output of {sampled} tokens")]
    Query {
        /// The generation.
        generation: u32,
        /// First token.
        start: u32,
        /// First token behind it.
        end: u32,
        /// Tokens of its output.
        sampled: usize,
    },
    /// What a model cannot do.
    #[error("{what}")]
    Unsupported {
        /// What was asked for and what to use instead.
        what: String,
    },
}
