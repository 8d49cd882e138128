use pleach_tree::{ContextId, GenerationId, SegmentId};

/// Why text could not be rendered to tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A file of the tokenizer's folder could not be read.
    #[error(
        "{file}: cannot be read: {source}; name a folder with a tokenizer.json, or the file itself"
    )]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A tokenizer file that cannot be used.
    #[error("{file}: cannot be used as a tokenizer: {message}; give a Hugging Face tokenizer.json")]
    Tokenizer {
        /// The file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// A chat template that cannot be used.
    #[error(
        "{file}: the chat template cannot be used: {message}; give another template, or none for the built-in ChatML"
    )]
    Template {
        /// The file it stands in.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// Several chat templates of which none is the one to take.
    #[error(
        "{file}: holds several chat templates and none is called `default`: {}; write the one to take into a file of its own and give that", .names.join(", ")
    )]
    Templates {
        /// The file they stand in.
        file: String,
        /// Their names.
        names: Vec<String>,
    },
    /// A date that is not one.
    #[error("{date:?} is not a date; write it as YYYY-MM-DD")]
    Date {
        /// What was given.
        date: String,
    },
    /// The template does not take the messages of a context.
    #[error(
        "{place}: the chat template refuses the messages of {generation}: {message}; \
         give a template that takes these roles in this order, or none for the built-in ChatML"
    )]
    Refused {
        /// File and line of the generation.
        place: String,
        /// The generation.
        generation: GenerationId,
        /// What the template says.
        message: String,
    },
    /// A segment whose text is not known, in a tree that has to be rendered from text.
    #[error(
        "{place}: {segment} has tokens but no text, while other segments have text alone; \
         give it its text, or give every segment tokens"
    )]
    TokensOnly {
        /// File and line of the segment.
        place: String,
        /// The segment.
        segment: SegmentId,
    },
    /// A part of a segment left a context, which text cannot follow.
    #[error(
        "{place}: {context} holds a part of {segment} by token range, while other segments have text alone; \
         give every segment tokens, or evict whole segments"
    )]
    PartOfSegment {
        /// File and line of the context.
        place: String,
        /// The context.
        context: ContextId,
        /// The segment.
        segment: SegmentId,
    },
    /// A tool call whose text is not one.
    #[error(
        "{place}: the text of {segment} is not a tool call: {message}; write it as {{\"id\":..,\"name\":..,\"input\":..}}"
    )]
    ToolCall {
        /// File and line of the segment.
        place: String,
        /// The segment.
        segment: SegmentId,
        /// What is wrong with it.
        message: String,
    },
    /// Text that the tokenizer does not take.
    #[error("the tokenizer refuses a text of {bytes} bytes: {message}; give another tokenizer")]
    Encode {
        /// Length of the text.
        bytes: usize,
        /// What the tokenizer says.
        message: String,
    },
    /// More segments or tokens than ids.
    #[error("the records need more than 2^32 ids of {what}; split them into several files")]
    TooMany {
        /// Of what.
        what: &'static str,
    },
}
