//! Session files of Claude Code, read from versions 2.1.0 to 2.1.39; of later ones what is publicly
//! described.
//!
//! A session is `FILE.jsonl`; what its sub-agents and summarisers wrote lies in
//! `FILE/subagents/*.jsonl`, in workflows in `FILE/subagents/**/agent-*.jsonl`, and is read with
//! it.
//!
//! # What a session becomes
//! - **Generations.** All lines of one `message.id` are one call. Its context is what stood before
//!   its first line. Each block is one segment: text and tool calls of origin policy, recorded
//!   thinking of origin external model, because the file holds a provider's summary of what was
//!   sampled. `policy` is the name of the model. A tool call's text is the object
//!   `{"id","name","input"}`, its input as the model wrote it (`wireToolInputs`).
//! - **The policy** is whichever model makes the calls of the session, sub-agents included; who
//!   trains one model filters by `policy`. A summariser whose model is not that of the thread it
//!   summarises is an external model, and so is its text.
//! - **Contexts** hold user and assistant lines, meta text, `local_command` lines, attachments and
//!   the compaction summary, in the order of the file, a message whole at the place of its first
//!   line, results before other lines of the same run. The harness moves attachments up to the last
//!   result or answer, so before the prompt of their turn. A message of the model `<synthetic>` is
//!   the harness's own. API errors, status, progress, titles and snapshots stand in none. What runs
//!   in parallel (lines of one message, results by their call's id, what hangs on them) is one
//!   node; a branch is only what opens a prompt, a call or a compaction of its own. A result
//!   answers the newest open call of its id, as some providers count ids anew.
//! - **Threads.** `main`, or the name of a sub-agent's file, is the branch of the last call. What a
//!   rewind or a retry gave up is `main~1`, `main~2` and so on, in the order in which the branches
//!   begin, so that its last view is not taken for a part of the thread that went on. A sub-agent
//!   starts from nothing; one that was forked (`fork-context-ref`, since version 2.1.118) from what
//!   stood before the call that forked it, a clone of which its file begins with, or behind the
//!   line that the file names where there is no clone; a summariser forks from the context that it
//!   summarises. Reminders that only the summariser's file has stand behind their parents in the
//!   calls of the thread too: what the API counted and read from its cache shows that they were
//!   sent.
//! - **Microcompactions** are evictions by the rule `microcompact`: each result leaves and a
//!   placeholder of key `ID#cleared` stands in its place. Versions 2.1.14 to 2.1.22 leave a pointer
//!   to a file for large results, whose exact text is not recorded.
//! - **Thinking that the API took out** of a request (`input_transformations`, since version
//!   2.1.260) is an eviction by the provider; where a later request keeps it, it comes back.
//! - **Full compactions** are evictions with the summary at the head and the preserved lines behind
//!   it. Where the call that wrote the summary is found, the part of its text that the summary
//!   quotes stands there as that call's own segments.
//! - **Text that has several authors.** Such a call's text is cut at the ends of what is quoted,
//!   and a segment that runs on into the next one, as one text, says `"open":true`.
//! - **Blocks without text**, such as images, are their JSON, with the size of base64 data in place
//!   of the data. A result of several blocks is one segment with a line break between them.
//! - **Attachments** are what their line says was sent (`rendered`, in the role `renderedRole`,
//!   since version 2.1.260), else their prompt or content, else, where they are data, the words
//!   that the harness is known to use. A type of which neither is known stands in no context and is
//!   named in a warning. What is shown to the person only is never sent, nor is the output of a
//!   hook that succeeded, but for `SessionStart` and `UserPromptSubmit`.
//! - **Queued text**, typed while a call ran and taken in by its turn, stands before the next call.
//!   Old versions record it as a movement of the queue only: where no line has it, it is put there,
//!   which lowers the fidelity, or a warning says that it is missing.
//! - **The system prompt and the tools** are recorded by `prompt_snapshot` since version 2.1.260.
//!   They stand at the head of every context from there on, compactions leave them there, and what
//!   changes in them is an eviction by the rule `prompt_snapshot`.
//! - **Keys.** `source.key` is the `uuid` of a line (`line-N` of one that has none), the call's id
//!   for a result, `ID#cleared` for what is left of it, and the `message.id` for what a call said.
//!
//! - **Copies.** A session that was resumed or forked into another file begins with the lines of
//!   the first. Of several files beside each other that begin with the same line, each has the
//!   calls that none before it has, by size and name, and so have its sub-agents; the rest are
//!   context. Lines with `forkedFrom` are copies where that session lies beside and has them. Lines
//!   of a sub-agent's file that are those of the session or of another sub-agent are the context
//!   that it starts from; of conversations that say the same in a message of one id, the one that
//!   the others were forked from has the call, else the first.
//!
//! # What is a fault
//! A fault is what the reader has to guess: a parent that is not in the file (the line before it is
//! taken), a boundary whose logical parent is not there or stands behind it (the last line before
//! the boundary), lines in a circle, one uuid with two contents, a second result for a call, a
//! boundary without its summary, a fork that names no line or one that is not there. Strict reading
//! rejects the session for it, lenient reading lists it and lowers the fidelity. What the harness
//! itself recorded so, and what is only not recorded, is a warning.
mod attachment;
mod clones;
mod compact;
mod content;
mod copies;
mod entry;
mod head;
mod line;
mod link;
mod load;
mod preserve;
mod queue;
mod replay;
mod request;
mod session;
mod summary;
mod transform;
mod turns;

pub(crate) use session::FORMAT;
pub use session::{SessionInput, convert_readers};
