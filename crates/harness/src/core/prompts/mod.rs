//! Prompts given, one a call: what each did to the context of the call before it.
//!
//! A request log and the token log of a trainer hold no evictions, only what every call was given
//! and what it said. Here a call is two lists of *units*, token ids or numbers of messages, and a
//! unit is found again by its value:
//!
//! - **append**: the prompt goes on from all that the call before was given and said;
//! - **replaced in place**: something else stands where a message stood, a placeholder or a shorter
//!   form of it;
//! - **rewritten**: behind the prompt of a call stands an answer in other words than it said, as
//!   where a harness puts tool calls into text: by the rule `rewritten`, and no words of the call;
//! - **summary**: something new stands for a stretch that is gone; its author is the call whose
//!   words it quotes, where one is found;
//! - **trim**: a stretch is gone and nothing stands for it;
//! - **fork**: the prompt goes back to where an earlier call stood, and on from there: a retry or a
//!   rewind.
//!
//! A call whose words the next prompt stands on is a summariser's, in a thread of its own that forks
//! from where it was asked, whatever its prompt lacks. What a log says itself, of the call that a
//! prompt goes on from or of who changed a list, goes before what is inferred.
//!
//! Whatever the reading, the context of a call holds exactly the units of its prompt; only names
//! and identities are inferred. Ids that differ from the concatenated ones around one boundary are
//! a tokeniser's doing and no eviction.
mod call;
mod edit;
mod follow;
mod head;
mod messages;
mod read;
mod tokens;

pub(crate) use call::{Call, Lineage, Said};
pub(crate) use follow::Prompts;
pub(crate) use messages::Messages;
pub(crate) use tokens::Tokens;

use pleach_tree::{ReplacementKind, Segment, SegmentId};

/// One unit of a context as it was written: a place in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) segment: SegmentId,
    pub(crate) at: u32,
}

/// What units are and how they are written.
pub(crate) trait Units {
    /// The shortest run that counts as found again anywhere but at the start.
    const RUN: usize;
    /// Whether a segment holds many units, so that a part of one can leave, and a boundary be
    /// tokenised anew.
    const SPLITS: bool;

    /// Units that no call said, as segments, each with how many of the units it holds; `first`
    /// where nothing stands before them.
    fn segments(&self, run: &[u32], first: bool) -> Vec<(Segment, usize)>;

    /// What it is for `new` to stand where `old` stood, where it can stand for it alone.
    fn stands_for(&self, new: u32, old: u32) -> Option<ReplacementKind>;

    /// Whether a unit answers a tool call.
    fn is_result(&self, unit: u32) -> bool;

    /// Whether a unit is an instruction at the head of a context.
    fn is_system(&self, unit: u32) -> bool;

    /// Whether a unit is a part of an answer, by its role.
    fn is_answer(&self, unit: u32) -> bool;

    /// Whether a run of new units holds what a call said, long enough not to be chance.
    fn quotes(&self, run: &[u32], said: &[u32]) -> bool;

    /// Whether a unit opens a turn that is not the policy's.
    fn opens_turn(&self, unit: u32) -> bool;
}
