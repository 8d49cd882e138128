//! The messages of a sample, each once, by what they are and say.
use std::rc::Rc;

use pleach_tree::Segment;

use super::message::{Attachments, Message};
use crate::core::script::{self, Spot};

/// What makes two messages the same: their id and a number for what they say.
pub(super) type Key = (Rc<str>, u64);

/// A message with its key.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) key: Key,
    pub(super) segments: Rc<[Segment]>,
}

impl Known {
    pub(super) fn new(
        message: Message,
        attachments: &mut Attachments<'_>,
        name: &str,
        spot: &Spot,
    ) -> Self {
        let id: Rc<str> = message.id.as_deref().unwrap_or(name).into();
        let segments: Rc<[Segment]> = message.segments(attachments, name, spot).into();
        Self { key: (id, script::content_number(&segments)), segments }
    }

    /// Whether it is an instruction at the head of a prompt.
    pub(super) fn is_system(&self) -> bool {
        self.segments.iter().all(|segment| segment.role == pleach_tree::Role::System)
    }
}
