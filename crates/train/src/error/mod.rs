mod objective;

pub use objective::ObjectiveError;

use burn::tensor::DType;
use pleach_kernels::KernelError;
use pleach_layout::LayoutError;
use std::path::PathBuf;

/// What is wrong with a device, a checkpoint, a batch or a comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Records that are at fault.
    #[error("{message}")]
    Records {
        /// What is wrong, and what to do.
        message: String,
    },
    /// Attention refused its mask or tensors.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A dtype that nothing is trained in here.
    #[error("{what} cannot be in {dtype:?}: use DType::F32 or DType::F64")]
    Dtype {
        /// What was to be in it.
        what: &'static str,
        /// The dtype that was asked for.
        dtype: DType,
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
    /// A folder that holds two checkpoints.
    #[error("{} names other files than {}, which lies beside it: remove the one that is not the checkpoint", index.display(), single.display())]
    TwoCheckpoints {
        /// The index of shards.
        index: PathBuf,
        /// The file that holds a whole checkpoint.
        single: PathBuf,
    },
    /// An output matrix that the configuration says is the embedding, and that is another one.
    #[error("{}: `{name}` is not the embedding, which the configuration ties it to: set `tie_word_embeddings` to false, or remove the tensor", path.display())]
    TiedHead {
        /// The file that holds it.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
    /// A weight that nothing can be computed with.
    #[error("{}: tensor `{name}` holds {value}: the checkpoint is damaged or diverged; take an earlier one", path.display())]
    TensorValue {
        /// The file that holds it.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// The weight.
        value: f64,
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
    #[error(
        "row {row} of the batch is empty: give at least one sequence, each with at least one token"
    )]
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
    /// A batch that lies elsewhere than its model.
    #[error(
        "the batch lies on {batch} and the model on {model}: make the batch on the model's device"
    )]
    BatchDevice {
        /// Device of the batch.
        batch: String,
        /// Device of the model.
        model: String,
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
        "the loss depends on no trainable parameter: unfreeze parameters, or take `log_probabilities`, which needs no gradients"
    )]
    Untracked,
    /// A loss on a device that records nothing for a backward pass.
    #[error("{device} has no autodiff: make the model on `device.autodiff()`")]
    NoAutodiff {
        /// Device of the loss.
        device: String,
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
    /// An objective or an advantage refused what it was given.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// What a model cannot do.
    #[error("{what}")]
    Unsupported {
        /// What was asked for and what to use instead.
        what: String,
    },
}

impl From<pleach_tree::TreeError> for TrainError {
    fn from(error: pleach_tree::TreeError) -> Self {
        Self::Records { message: error.to_string() }
    }
}
