//! Trajectories in the Agent Trajectory Interchange Format (ATIF), versions 1.0 to 1.8, read and
//! written.
//!
//! # What a trajectory becomes
//! - **Generations** are agent steps that called a model: not those of `llm_call_count` 0, which
//!   the harness made, and not those of `is_copied_context`, which were sampled elsewhere and are
//!   context here. Where all of them have `prompt_token_ids` and `completion_token_ids`, contexts
//!   are those ids, and evictions are where a prompt does not extend the one before (inferred).
//! - **Contexts** are otherwise the steps in order: messages, reasoning, tool calls as
//!   `{"id","name","input"}`, observations; a result that names no call is the environment's
//!   message. Reasoning is taken as a provider's words and carries no loss.
//! - **`extra.context_management`** with `boundary` `replace` takes out everything but the leading
//!   system steps and puts the step's observation in its place, or nothing, because the message of
//!   such a step is a note to the reader; `truncate` takes out and puts nothing; `append` (an
//!   injection) adds the observation, else the message. Its author is the call that the step makes,
//!   if any.
//! - **`continued_trajectory_ref`** names the file that the run goes on in, read where it lies
//!   beside; its first context is compared with the last one here. **`subagent_trajectories`**, and
//!   files that observations refer to, are threads of their own; where their first steps are copies
//!   of what stands here, they fork from there. A file that is named and not there is a warning.
//! - **Handoffs** of Terminus 2 are system steps that refer to its three sub-agents. Behind one
//!   stand what the run began with, the questions' prompt, the questions, and the answers; the rest
//!   is out, by the call that wrote the summary. The step's own message is a note to the reader.
//! - **Several trajectories** in one file are a rollout for each session id.
//!
//! # What is written
//! [`write()`] writes one trajectory: the main thread as steps, every other thread under
//! `subagent_trajectories`. What the format cannot say travels in `extra.eviction_records`: every
//! record, in order, with the place of its text and ids in the steps instead of a copy of them. A
//! trajectory that has it is read back record for record.
mod export;
mod handoff;
mod import;
mod model;
mod skeleton;
mod steps;
mod tokens;

pub use export::write;

use pleach_tree::ReadOptions;
use serde_json::Value;

use crate::core::draft::Draft;
use crate::core::format::Format;
use crate::core::input::Member;
use crate::core::script::Spot;
use crate::core::shape::{Kind, Shape};
use crate::{Conversion, HarnessError, Input};

/// How trajectories are told from other files.
pub(crate) const FORMAT: Format = Format::new("atif", "an ATIF trajectory", is_trajectory, convert);

fn is_trajectory(shape: &Shape) -> bool {
    let named = shape.text("schema_version").is_some_and(|version| version.starts_with("ATIF"));
    shape.kind("steps") == Some(Kind::List)
        && (named || shape.has_all(&["steps[].step_id", "steps[].source"]))
}

/// A trajectory as it was read.
struct Document {
    value: Value,
    member: Member,
    spot: Spot,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let main = input.main();
    let mut draft = Draft::new("atif", pleach_tree::Fidelity::Message, options);
    let documents = read(&main, &mut draft)?;
    let [document] = documents.as_slice() else {
        return import::convert(input, documents, draft);
    };
    let Some(kept) = document.value.pointer("/extra/eviction_records") else {
        return import::convert(input, documents, draft);
    };
    match skeleton::records(&document.value, kept) {
        Ok(records) => draft.finish_with(records),
        Err(why) => {
            let message = format!("{why}; the steps are read as if it were not there");
            draft.fault(&document.spot.at, "extra.eviction_records", "eviction-records", message);
            import::convert(input, documents, draft)
        }
    }
}

/// The trajectories of a file.
fn read(member: &Member, draft: &mut Draft) -> Result<Vec<Document>, HarnessError> {
    let file = draft.file(member);
    let (options, mut report) = (draft.options, draft.report.take());
    let mut documents = Vec::new();
    let read = member.values(options, &mut report, |value: Value, at, _| {
        documents.push(Document {
            value,
            member: member.clone(),
            spot: Spot { file, at: at.clone() },
        });
    });
    draft.report = report;
    read.map(|()| documents)
}
