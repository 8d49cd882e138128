/// Why an objective or an advantage cannot be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
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
    /// Two terms of one name.
    #[error(
        "generation {generation}, offset {offset} is a term of the batch twice: make one batch a tree, since every file numbers its own generations"
    )]
    Duplicate {
        /// Generation of both terms.
        generation: u32,
        /// Offset of both terms.
        offset: u32,
    },
    /// A pair that points outside its batch.
    #[error(
        "pair {pair} reads row {row} of the {side}'s {rows} hidden states: make pairs of the batches that are run"
    )]
    Row {
        /// Index of the pair.
        pair: usize,
        /// `student` or `teacher`.
        side: &'static str,
        /// The row.
        row: i64,
        /// How many rows there are.
        rows: usize,
    },
    /// Finite numbers whose sums or squares are not.
    #[error("{what} overflow: scale rewards and values down")]
    Overflow {
        /// What was to be computed.
        what: &'static str,
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
    #[error(
        "{found} numbers are given as {what}, {terms} are needed: give one each, in the same order"
    )]
    SignalLength {
        /// What they are.
        what: &'static str,
        /// How many are needed.
        terms: usize,
        /// How many were given.
        found: usize,
    },
    /// A term that reads a hidden state that is not there.
    #[error(
        "generation {generation}, offset {offset}: the term reads row {row} of {rows} hidden states: take the terms of the batch that is run"
    )]
    TermRow {
        /// Generation of the term.
        generation: u32,
        /// Offset of the term.
        offset: u32,
        /// The row that it reads.
        row: i64,
        /// Rows that there are.
        rows: usize,
    },
    /// A number of a term that cannot be computed with.
    #[error(
        "generation {generation}, offset {offset}: {what} {value} is not finite: record it, or give the term weight 0"
    )]
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
    #[error(
        "rollout {rollout} has reward {reward}: give a finite reward, or leave the rollout out of its group"
    )]
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
    /// Two queries that share tokens, which would count twice.
    #[error(
        "generation {generation}: a query at {start}..{end} begins inside the one before it: give each token to one query"
    )]
    OverlappingQueries {
        /// The generation.
        generation: u32,
        /// First token of the later query.
        start: u32,
        /// First token behind it.
        end: u32,
    },
    /// A query outside what its generation sampled.
    #[error(
        "generation {generation}: a query at {start}..{end} lies outside its output of {sampled} tokens"
    )]
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
}
