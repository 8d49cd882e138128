/// A segment to be written.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Number of its role.
    pub role: u8,
    /// Number of its origin where it is not the policy's.
    pub origin: u8,
    /// Runs of loss weights as length and number of the weight; empty for no declaration.
    pub weights: Vec<(u8, u8)>,
    /// Whether the rest of the record is written out: log-probabilities, text, source, unknown
    /// fields.
    pub full: bool,
    /// A segment whose token values it repeats.
    pub copy_of: Option<u8>,
}

/// What of a segment leaves.
#[derive(Debug, Clone, Copy)]
pub struct Pick {
    /// Number of the segment in its context.
    pub segment: u8,
    /// Where the range begins and how far it goes; whole segments have none.
    pub range: Option<(u8, u8)>,
}

/// An eviction.
#[derive(Debug, Clone)]
pub struct Cut {
    /// What leaves.
    pub picks: Vec<Pick>,
    /// What comes for it; none for no replacement at all.
    pub replacement: Option<Vec<Text>>,
    /// Whether the replacement is cut or filled up to one segment for each range.
    pub one_each: bool,
    /// Number of the replacement's kind.
    pub kind: u8,
    /// Number of its place.
    pub place: u8,
    /// Number of its author.
    pub by: u8,
}

/// Something that a harness does in the thread at hand.
#[derive(Debug, Clone)]
pub enum Step {
    /// Begins a root with a prompt, in a thread of its own.
    Root(Vec<Text>),
    /// Calls the policy, then appends what it said (or drops it) and what came back.
    Say {
        /// What the policy says; a text may be another model's.
        output: Vec<Text>,
        /// What comes back.
        reply: Vec<Text>,
        /// Whether the output is left out of the next context.
        dropped: bool,
    },
    /// Calls the policy again under the same context.
    Again(Vec<Text>),
    /// Appends without a call, with a segment that left before where there is one.
    Append(Vec<Text>, Option<u8>),
    /// Evicts.
    Evict(Cut),
    /// Has the policy write the replacement of an eviction in a thread of its own.
    Summarise(Text, Text, Cut),
    /// Gives the whole list anew: the segments that stay, from a number on, and new ones.
    Replace(Vec<u8>, Vec<Text>),
    /// Copies a context into a new thread, of a new rollout where told.
    Fork {
        /// Number of the context.
        from: u8,
        /// Number of the reason.
        reason: u8,
        /// Whether it begins a rollout.
        rollout: bool,
    },
    /// Goes on in another thread.
    Switch(u8),
    /// Goes on from an older context of the thread, without a fork.
    Back(u8),
    /// Writes a record of a type that nobody knows.
    Note,
}
