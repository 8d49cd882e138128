use crate::{ContextId, GenerationId, SegmentId};

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $variant:ident $({ $($field:ident : $ty:ty),+ $(,)? })? , $code:literal, $message:literal,
       do $advice:literal $(, repair $repair:literal)?;)+) => {
        /// What can be wrong in a file, each with a stable code, what to do, and how lenient
        /// reading repairs it.
        #[derive(Debug, Clone, PartialEq, thiserror::Error)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the message of each variant says what its fields are")]
        pub enum Fault {
            $($(#[doc = $doc])+ #[error($message)] $variant $({ $($field: $ty),+ })?,)+
        }

        impl Fault {
            /// Stable name of the fault.
            pub fn code(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $code,)+ }
            }

            /// What to do about it.
            pub fn advice(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $advice,)+ }
            }

            /// What lenient reading does about it, where it can do something.
            pub fn repair(&self) -> Option<&'static str> {
                match self { $(Self::$variant { .. } => faults!(@repair $($repair)?),)+ }
            }
        }
    };
    (@repair) => { None };
    (@repair $repair:literal) => { Some($repair) };
}

faults! {
    // Reading.
    /// The file begins with a byte order mark.
    ByteOrderMark, "byte-order-mark", "the file begins with a byte order mark",
        do "save the file as UTF-8 without one", repair "stripped it";
    /// NUL bytes inside a line.
    NulBytes { count: usize }, "nul-bytes", "the line holds NUL bytes ({count})",
        do "the file was cut by a crash or a full disk: restore it, or read with ReadOptions::LENIENT", repair "dropped them";
    /// The last line is not finished.
    TruncatedLine { bytes: usize }, "truncated-line", "the last line breaks off at byte {bytes}",
        do "the writer was stopped: delete the line, or read with ReadOptions::LENIENT", repair "dropped the line";
    /// Several values on one line.
    GluedRecords { count: usize }, "glued-records", "{count} records stand on one line",
        do "put each record on a line of its own, or read with ReadOptions::LENIENT", repair "took them one by one";
    /// Bytes that are not UTF-8.
    InvalidUtf8 { at: usize }, "invalid-utf8", "byte {at} of the line is not UTF-8",
        do "convert the file to UTF-8, or read with ReadOptions::LENIENT", repair "put U+FFFD for what is not UTF-8";
    /// Half of a UTF-16 pair in an escape.
    LoneSurrogate { count: usize }, "lone-surrogate", "an escape holds half of a surrogate pair ({count} in the line)",
        do "a writer cut a string inside a character: read with ReadOptions::LENIENT", repair "put U+FFFD for each";
    /// Numbers that Python writes and JSON does not have.
    NoNumber { word: &'static str, count: usize }, "no-number", "{word} is no number that JSON has ({count} in this list or object)",
        do "write null or leave it out, as Python's json.dumps with allow_nan=False asks for, or read with ReadOptions::LENIENT", repair "read null for each";
    /// A line over the limit.
    LineTooLong { limit: usize }, "line-too-long", "the line is longer than the limit of {limit} bytes",
        do "raise max_line_bytes, or cut the line", repair "left the line out";
    /// Not JSON.
    Json { message: String }, "json", "the line is not JSON: {message}",
        do "mend the line, or read with ReadOptions::LENIENT", repair "left the line out";
    /// A field that is missing or has the wrong type.
    Field { message: String }, "field", "{message}",
        do "write the field as the record format describes it", repair "left the record out";
    /// A record type that this version does not know.
    UnknownType { tag: String, count: usize }, "unknown-type", "record type {tag:?} is not known ({count} in the file)",
        do "the records are kept and written back; a newer version may use them";
    /// A key that this version does not know.
    UnknownKey { key: String, count: usize }, "unknown-key", "key {key:?} is not known ({count} in the file)",
        do "it is kept and written back, and nothing reads it; name a key of your own with x_ before it";
    /// A key that is nearly a known one.
    MisspeltKey { key: String, known: &'static str }, "misspelt-key", "key {key:?} is not known, but {known:?} is",
        do "spell it so, or name a key of your own with x_ before it", repair "read it so";
    /// Records of another version.
    UnsupportedVersion { version: u32 }, "unsupported-version", "the records are of version {version}, this program reads version 1",
        do "convert them with a version of pleach that reads both";
    /// A compressed file.
    Compressed { kind: String }, "unknown-compression", "the file is compressed ({kind}), which is not read here",
        do "decompress it first";
    /// The first record is no header.
    MissingHeader, "missing-header", "the first record is not a header",
        do "begin the file with {\"t\":\"header\",\"version\":1,...}";
    /// A header that is not the first record.
    SecondHeader, "second-header", "a second header stands in the file",
        do "give each file one header, at its top", repair "kept the first";
    /// A segment without tokens and text.
    NoContent { segment: SegmentId }, "no-content", "{segment} has neither tokens nor text",
        do "give it one of the two; an empty segment has \"tokens\":[]";

    // Graph.
    /// One id, two contents.
    DuplicateId { what: &'static str, id: u32 }, "duplicate-id", "{what} {id} stands above with different content",
        do "give each an id of its own", repair "kept the first";
    /// A segment that no line above defines.
    MissingSegment { segment: SegmentId }, "missing-segment", "{segment} is not defined above",
        do "a line may only refer to what stands above it: add or move the segment's record", repair "went on without it";
    /// A context that no line above defines.
    MissingContext { context: ContextId }, "missing-context", "{context} is not defined above",
        do "a line may only refer to what stands above it: add or move the context's record", repair "left the record out";
    /// A generation that no line above defines.
    MissingGeneration { generation: GenerationId }, "missing-generation", "{generation} is not defined above",
        do "name the generation that decided, which stands above", repair "took the author as unknown";
    /// A context made from itself.
    Cycle { context: ContextId }, "cycle", "{context} is made from itself",
        do "name the context it was made from", repair "left the record out";
    /// A thread with two roots.
    SecondRoot { thread: String, root: ContextId, first: ContextId }, "second-root",
        "thread {thread:?} has a second root, {root} beside {first}",
        do "a thread goes on from where it was: use fork, or another thread name", repair "took the new root as a thread of its own";
    /// One rollout, two outcomes.
    SecondOutcome { rollout: String }, "second-outcome", "rollout {rollout:?} has a second outcome that differs",
        do "give each rollout one outcome", repair "kept the first";
    /// A fork where keys and values are evicted in place.
    ForkUnderKvEvict { context: ContextId }, "fork-under-kv-evict", "{context} forks, but under cache \"kv_evict\" there is one tape",
        do "write the rollout as one thread, or with cache \"reprefill\"";

    // Contexts.
    /// A range that is not in the context.
    EvictedNotInContext { segment: SegmentId, start: u32, end: u32, from: ContextId }, "evicted-not-in-context",
        "tokens {start}..{end} of {segment} are not all in {from}",
        do "evict only what the context holds", repair "took out what is there";
    /// A range beyond the segment.
    RangeOutside { segment: SegmentId, start: u32, end: u32, len: usize }, "range-outside-segment",
        "range {start}..{end} is empty or reaches outside {segment} of length {len}",
        do "give a half-open range inside the segment", repair "clamped it, or left it out where nothing remains";
    /// A token range of a segment without tokens.
    RangeWithoutTokens { segment: SegmentId }, "range-without-tokens", "a token range is evicted from {segment}, which has no tokens",
        do "tokenise the records first, or evict the whole segment", repair "took out the whole segment";
    /// Two ranges that overlap.
    OverlappingRanges { segment: SegmentId }, "overlapping-ranges", "ranges of {segment} overlap",
        do "list each evicted token once", repair "took their union";
    /// Nothing leaves.
    EmptyEviction { context: ContextId }, "empty-eviction", "the eviction that makes {context} removes nothing",
        do "leave it out, or use append or fork", repair "let the context stand as it was, the replacement at its end";
    /// A replacement that leaves at once.
    ReplacementEvicted { segment: SegmentId }, "replacement-evicted", "{segment} is evicted and stands in the replacement",
        do "evict it in a record of its own", repair "left it where it stood";
    /// A place that is not there.
    PlaceOutside { index: u32, pieces: usize }, "place-outside", "place {{\"index\":{index}}} is beyond the {pieces} pieces that are left",
        do "count the contiguous pieces after removal", repair "put the replacement at the end";
    /// Segments in a replacement by nothing.
    SegmentsOfNone { count: usize }, "segments-of-none", "a replacement of kind \"none\" has segments ({count})",
        do "give the replacement its kind, or no segments", repair "took it as a placeholder";
    /// Embeddings in a replacement of text.
    LatentKind, "latent-kind", "embeddings stand in a replacement of another kind",
        do "give the replacement the kind \"latent\"", repair "dropped the embeddings";
    /// The same tokens twice.
    DuplicateIdentity { segment: SegmentId }, "duplicate-identity", "{segment} stands twice in one context",
        do "a token identity stands at most once: write a second copy as a segment of its own", repair "kept the first place";
    /// An evicted segment that comes back without an index.
    UnofferedAppend { segment: SegmentId }, "unoffered-append", "{segment} was evicted, comes back, and no replacement of kind \"index\" offered it",
        do "check that the harness can bring it back";
    /// A tool result without its call.
    OrphanResult { segment: SegmentId, call: String, sent: &'static str }, "orphan-result",
        "{segment} answers call {call:?}, which is not in the context{sent}",
        do "check the eviction that took the call out";

    // Tokens.
    /// A list that is not as long as the tokens.
    LengthMismatch { what: &'static str, len: usize, tokens: usize }, "length-mismatch", "{what} cover {len} tokens of {tokens}",
        do "give one entry for each token", repair "dropped them";
    /// Runs that do not tile.
    LossRuns { segment: SegmentId, at: u32 }, "loss-runs", "the loss runs of {segment} do not tile it, at token {at}",
        do "give runs [start, end, weight] that follow each other from 0 to the end", repair "dropped them";
    /// A weight that is not a number.
    LossWeight { segment: SegmentId, weight: f64 }, "loss-weight", "loss weight {weight} of {segment} is not a finite number",
        do "give a finite weight", repair "dropped the weights";
    /// A log-probability that cannot be.
    Logprob { at: usize, value: f64 }, "logprob", "log-probability {value} of token {at} is above 0 or not finite",
        do "give natural logarithms of probabilities", repair "dropped the log-probabilities";
    /// An id outside the vocabulary.
    OutsideVocabulary { segment: SegmentId, token: u32, vocab: u32 }, "outside-vocabulary",
        "token id {token} of {segment} is outside the vocabulary of {vocab}",
        do "check that header.tokenizer is the one that made the ids";
    /// A token that nothing conditions.
    EmptyPrefix { generation: GenerationId }, "empty-prefix", "the first token of {generation} has nothing before it",
        do "put at least a beginning-of-text token in its context, or give it weight 0", repair "gave it weight 0";
    /// A call whose output no model wrote.
    NotSampled { generation: GenerationId }, "not-sampled", "no segment of the output of {generation} was sampled by a model",
        do "give what the policy sampled the origin \"policy\", and what another model did \"external_model\"", repair "kept the call, which carries no loss";
    /// Loss where the policy sampled nothing.
    LossNotSampled { segment: SegmentId }, "loss-not-sampled", "{segment} has loss, but the policy did not sample it",
        do "only a generation's output of origin policy can carry loss", repair "dropped its weights";
    /// Output of two generations.
    TrainedTwice { segment: SegmentId, first: GenerationId, second: GenerationId }, "trained-twice",
        "{segment} is the output of {first} and again of {second}",
        do "give a second call its own segments, or weight 0", repair "gave the second call a copy of weight 0";
    /// A prompt that differs from the recorded one.
    PromptMismatch { generation: GenerationId, at: usize, context: String, recorded: String }, "prompt-mismatch",
        "the context of {generation} differs from the recorded prompt at position {at}: {context} against {recorded}",
        do "the records do not say what the policy saw: check retokenisation at segment boundaries", repair "kept the context and dropped the recorded prompt";

    // Adapters.
    /// What an adapter found in a harness's own file.
    Harness { code: &'static str, message: String }, "harness", "{code}: {message}",
        do "the adapter's documentation says what the harness writes; ReadOptions::LENIENT goes on where the file is at fault", repair "went on as the message says";
}
