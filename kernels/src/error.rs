use burn::tensor::DType;

/// What is wrong with a mask or with the tensors given to attention.
///
/// Everything is found on the host before a kernel is launched, so that a device never sees an
/// invalid problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The mask has no rows.
    #[error("the mask is empty: give at least one row with at least one token")]
    EmptyMask,
    /// A row of the mask has no tokens.
    #[error("row {row} has no tokens: leave it out")]
    EmptyRow {
        /// Row of the batch.
        row: usize,
    },
    /// Rotary tables of no positions.
    #[error(
        "there are no positions to rotate to: give at least one row with at least one position"
    )]
    NoPositions,
    /// A row is longer or shorter than the mask's.
    #[error(
        "row {row} of `{array}` has {found} entries, the row's `ends` have {expected}: give one for each token"
    )]
    RowLength {
        /// The array that disagrees.
        array: &'static str,
        /// Row of the batch.
        row: usize,
        /// Tokens of the mask's row.
        expected: usize,
        /// Entries that were given.
        found: usize,
    },
    /// The arrays have different numbers of rows.
    #[error(
        "`{array}` has {found} rows, the mask has {expected}: give one row of `{array}` per row of the mask"
    )]
    Rows {
        /// The array that disagrees.
        array: &'static str,
        /// Rows of the mask.
        expected: usize,
        /// Rows that were given.
        found: usize,
    },
    /// A row is too long for int32 indices.
    #[error(
        "a row of {time} tokens does not fit int32 indices: split the batch into rows below 2147483647 tokens"
    )]
    TooLong {
        /// Tokens of the row.
        time: usize,
    },
    /// An interval ends before its token.
    #[error(
        "row {row}: ends[{token}] = {end} lies before the token: use {token} for padding, or an index after it up to the row's length"
    )]
    EndBeforeToken {
        /// Row of the batch.
        row: usize,
        /// Index of the token.
        token: usize,
        /// The end that was given.
        end: i32,
    },
    /// An interval ends after its row.
    #[error(
        "row {row}: ends[{token}] = {end} lies beyond the row's {time} tokens: use {time} for a token that is visible to the end"
    )]
    EndBeyondRow {
        /// Row of the batch.
        row: usize,
        /// Index of the token.
        token: usize,
        /// The end that was given.
        end: i32,
        /// Tokens of the row.
        time: usize,
    },
    /// A sliding window of no tokens.
    #[error(
        "a sliding window of 0 tokens hides every token from itself: use at least 1, or no window"
    )]
    EmptyWindow,
    /// A position before the start of the conversation.
    ///
    /// Without it the difference of two positions always fits int32, which devices compute in.
    #[error(
        "row {row}: {array}[{token}] = {position} is negative: count positions from 0 at the start of the conversation"
    )]
    NegativePosition {
        /// The array that holds it.
        array: &'static str,
        /// Row of the batch.
        row: usize,
        /// Index of the token.
        token: usize,
        /// The position that was given.
        position: i32,
    },
    /// The view of a row does not end with its own token, is out of range, or names a token
    /// twice.
    #[error(
        "the view of row {row} is invalid at entry {entry} (key {key}): list each visible key once, and the row itself last"
    )]
    InvalidView {
        /// The row whose view it is.
        row: usize,
        /// Index into the view.
        entry: usize,
        /// The key that stands there.
        key: u32,
    },
    /// A tensor does not have the shape that the others and the mask imply.
    #[error(
        "`{tensor}` has shape {found:?}, expected {expected:?}: give it the rows, heads, tokens and features of the others"
    )]
    Shape {
        /// Name of the tensor.
        tensor: &'static str,
        /// The shape that the other arguments imply.
        expected: Vec<usize>,
        /// The shape that was given.
        found: Vec<usize>,
    },
    /// Query heads cannot be shared out evenly among the key/value heads.
    #[error(
        "{heads_q} query heads do not divide among {heads_kv} key/value heads: heads_q must be a multiple of heads_kv"
    )]
    Heads {
        /// Query heads.
        heads_q: usize,
        /// Key/value heads.
        heads_kv: usize,
    },
    /// Rotary tables need pairs of features.
    #[error(
        "head dimension {head_dim} does not fit {frequencies} rotary frequencies: it must be twice their number"
    )]
    RotaryWidth {
        /// Features of a head.
        head_dim: usize,
        /// Frequencies that were given.
        frequencies: usize,
    },
    /// Rotary tables of no frequencies.
    #[error("there are no rotary frequencies: give head_dim / 2 of them, in radians per token")]
    NoFrequencies,
    /// A rotary frequency that is no number.
    #[error(
        "rotary frequency {at} is {value}: give radians per token, theta^(-2 i / head_dim) as a rule"
    )]
    Frequency {
        /// Index of the frequency.
        at: usize,
        /// The frequency that was given.
        value: f64,
    },
    /// Rotary tables in integers.
    #[error("rotary tables in {dtype:?} cannot rotate: use the float dtype of q and k")]
    RotaryDtype {
        /// The dtype that was given.
        dtype: DType,
    },
    /// q, k and v, or a tensor and its rotary table, do not have one dtype.
    #[error("`{tensor}` is {found:?} but {of} is {expected:?}: cast them to one dtype")]
    MixedDtypes {
        /// Name of the tensor.
        tensor: &'static str,
        /// What the tensor is used with.
        of: &'static str,
        /// Dtype of that.
        expected: DType,
        /// Dtype that was given.
        found: DType,
    },
    /// The dtype cannot be computed in on this device.
    #[error("attention in {dtype:?} is not available on {device}: use {advice}")]
    Dtype {
        /// The dtype of q, k and v.
        dtype: DType,
        /// The device they lie on.
        device: String,
        /// What works instead.
        advice: &'static str,
    },
    /// A tensor lies on another device than the mask, or the rotary table.
    #[error(
        "{of} lies on {expected} but `{tensor}` on {found}: put both on the device of the model"
    )]
    Device {
        /// Name of the tensor.
        tensor: &'static str,
        /// What the tensor is used with.
        of: &'static str,
        /// Device of that.
        expected: String,
        /// Device of the tensor.
        found: String,
    },
    /// A scale that is not a finite number.
    #[error("the attention scale is {scale}: use a finite number, 1/sqrt(head_dim) as a rule")]
    Scale {
        /// The scale that was given.
        scale: f64,
    },
    /// Heads without features.
    #[error("heads have 0 features: give q, k and v at least one")]
    NoFeatures,
    /// An execution that does not run on the device of the tensors.
    #[error("execution {execution:?} does not run on {device}: use {advice}")]
    Execution {
        /// The execution that was forced.
        execution: crate::Execution,
        /// The device of the tensors.
        device: String,
        /// What runs there.
        advice: &'static str,
    },
    /// A tile without rows or keys.
    #[error("a tile of 0 rows or 0 keys covers nothing: use sides of at least 1 token")]
    EmptyTile,
    /// More live tiles than an offset counts.
    #[error(
        "tiles of {rows} x {keys} tokens give more than 2^32 - 1 live tiles: use greater tiles or fewer rows at once"
    )]
    TooManyTiles {
        /// Query rows of a tile.
        rows: usize,
        /// Keys of a tile.
        keys: usize,
    },
    /// Heads with more features than any kernel of the device takes.
    #[error(
        "heads have {head_dim} features, the kernels of this device take up to {largest}: use Execution::Reference"
    )]
    HeadDim {
        /// Features of a head.
        head_dim: usize,
        /// The most that a kernel takes.
        largest: usize,
    },
    /// A problem beyond a limit of its device.
    #[error("attention needs {needed} {what}, the device has {limit}: {advice}")]
    DeviceLimit {
        /// What there is too much of.
        what: &'static str,
        /// How much the problem needs.
        needed: usize,
        /// How much the device has.
        limit: usize,
        /// What to do.
        advice: &'static str,
    },
}
