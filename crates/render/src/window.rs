//! Long contexts by their ends: what comes behind a list is rendered with the head of the
//! conversation and its last messages alone, so that rendering is linear in what is new.
//!
//! That holds for a template in which a message does not change later, or changes only behind the
//! last user message, and looks no further back than a few messages. Whether it does is checked on
//! the template and the conversation at hand: whenever a list has doubled, before anything but an
//! append is done to it, and where nothing more is appended, the ids of the list are compared with
//! those of the whole rendering. Where they differ, the tree is rendered anew without windows.
use std::rc::Rc;

use pleach_tree::{Append, ContextId, Role};

use super::RenderError;
use super::list_edit::{ListEdit, Plan};
use super::lists::Held;
use super::message::Messages;
use super::operation::Author;
use super::rewrite::Rewriter;
use super::target::Target;
use super::view::{Failure, runs};

/// Messages at the end of a list that what comes behind is rendered with.
const WINDOW: usize = 8;
/// Messages from which on a list is long.
const LONG: usize = 3 * WINDOW;

/// The head of a conversation and its last messages, where there are enough between them to be left
/// out.
pub(super) fn window(messages: &Messages, held: &Held) -> Option<Vec<u32>> {
    if held.starts.len() < LONG {
        return None;
    }
    let role = |at: usize| messages.segment(held.members[held.starts[at]]).role;
    // Instructions and the first that is asked: a template may put tools or dates there.
    let asked = (0..held.starts.len()).find(|&at| role(at) == Role::User)?;
    let head = *held.starts.get(asked + 1)?;
    // A result is rendered behind the call that it answers.
    let first = (0..=held.starts.len() - WINDOW)
        .rev()
        .find(|&at| matches!(role(at), Role::User | Role::Assistant))?;
    let tail = held.starts[first];
    (tail > head).then(|| [&held.members[..head], &held.members[tail..]].concat())
}

impl Rewriter<'_, '_> {
    /// Writes an append to a long list by what stands at the end of it alone; gives the list back
    /// where that cannot be.
    pub(super) fn append_behind(
        &mut self,
        context: ContextId,
        append: &Append,
        held: Rc<Held>,
    ) -> Result<Option<Rc<Held>>, RenderError> {
        let messages = &self.viewer.messages;
        let Some(from) = append.from.filter(|_| self.windows) else { return Ok(Some(held)) };
        let Some(window) = window(messages, &held) else { return Ok(Some(held)) };
        let new: Option<Vec<u32>> = append.segments.iter().map(|&id| messages.number(id)).collect();
        let Some(new) = new else { return Ok(Some(held)) };
        let whole = [&window, &new[..]].concat();
        let (was_called, is_called) =
            (self.called.contains_key(&from), self.called.contains_key(&context));
        let rendered =
            (self.viewer.render(&window, was_called), self.viewer.render(&whole, is_called));
        let (before, after) = match rendered {
            (Ok(before), Ok(after)) => (before, after),
            (Err(Failure::Other(error)), _) | (_, Err(Failure::Other(error))) => return Err(error),
            _ => return Ok(Some(held)),
        };
        let first = before.tokens.ids.len();
        let goes_on = after.text.starts_with(&before.text)
            && after.tokens.ids.get(..first) == Some(&before.tokens.ids[..]);
        let regions: Vec<_> =
            after.regions.iter().filter(|region| region.end > before.text.len()).copied().collect();
        let own = regions
            .iter()
            .all(|region| region.start >= before.text.len() && new.contains(&region.segment));
        if !goes_on || !own {
            return Ok(Some(held));
        }
        let runs = runs(&after.tokens, &regions, first);
        let target = Target::behind(&mut self.table, &self.viewer.messages, &held.list);
        let spans = target.append(&runs, &after.tokens.ids, &new)?;
        let segments = spans.iter().map(|span| span.segment).collect();
        let plan = Plan { steps: vec![ListEdit::Append(segments)], list: Vec::new() };
        let author = Author::of(pleach_tree::Operation::Append(append));
        self.emit(plan, context, (Some(from), &[]), author)?;
        let mut held = Rc::try_unwrap(held).unwrap_or_else(|held| (*held).clone());
        held.list.extend(spans);
        held.members.extend(new);
        self.viewer.messages.starts(&held.members, &mut held.starts);
        if held.starts.len() >= 2 * held.rendered || self.lists.is_end(context) {
            self.confirm_list(&held, context)?;
            held.rendered = held.starts.len();
        }
        self.lists.put(context, Rc::new(held));
        Ok(None)
    }

    /// Compares a list that windows were used for with the rendering of the whole.
    pub(super) fn confirm_list(
        &mut self,
        held: &Held,
        context: ContextId,
    ) -> Result<(), RenderError> {
        let called = self.called.contains_key(&context);
        let same = match self.viewer.ids(&held.members, called) {
            Ok(whole) => {
                let ids = held.list.iter().flat_map(|&span| self.table.ids(span));
                ids.eq(whole.iter())
            }
            // What the template refuses as a whole is not rendered by its end either.
            Err(Failure::Refused(_)) if !called => false,
            Err(failure) => return Err(self.refused(context, failure)),
        };
        self.sure &= same;
        self.viewer.forget();
        Ok(())
    }
}
