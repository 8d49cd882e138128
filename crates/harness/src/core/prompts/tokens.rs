//! Units that are token ids.
use pleach_tree::{Origin, ReplacementKind, Role, Segment, SegmentId};

use super::Units;
use pleach_tree::diff::Diff;

/// Token ids as a trainer's log gives them, whose roles are not recorded.
#[derive(Debug, Default)]
pub(crate) struct Tokens;

impl Units for Tokens {
    /// Long enough that markup and figures of speech do not count as survivors.
    const RUN: usize = 12;
    const SPLITS: bool = true;

    fn segments(&self, run: &[u32], first: bool) -> Vec<(Segment, usize)> {
        let origin = if first { Origin::Harness } else { Origin::Environment };
        let segment = Segment::new(SegmentId(0), Role::User, origin).with_tokens(run.to_vec());
        vec![(segment, run.len())]
    }

    fn stands_for(&self, _: u32, _: u32) -> Option<ReplacementKind> {
        None
    }

    fn is_result(&self, _: u32) -> bool {
        false
    }

    fn is_system(&self, _: u32) -> bool {
        false
    }

    fn is_answer(&self, _: u32) -> bool {
        false
    }

    fn quotes(&self, run: &[u32], said: &[u32]) -> bool {
        let kept = Diff::new(said, run, Self::RUN.min(said.len().max(1)));
        let quoted: usize = kept.kept().iter().map(|run| run.len).sum();
        said.len() >= 4 && quoted * 2 > said.len()
    }

    fn opens_turn(&self, _: u32) -> bool {
        true
    }
}
